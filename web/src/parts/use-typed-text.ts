import { useEffect, useRef, useState } from 'react';
import { oneOf, useUrlState, type UrlState } from './url-state.ts';

/** Typing pauses for so long before the address has it. */
const settledMs = 250;

/**
 * The text of a field that stands in the address. The field has it at once: the address comes too late for those who
 * type fast. The field follows the address where something else changes that.
 * @param also other parameters of the address that change with it
 */
export function useTypedText(name: string, also: UrlState = {}): [typed: string, type: (text: string) => void] {
  const [state, set] = useUrlState();
  const inAddress = oneOf(state[name]) ?? '';
  const [typed, setTyped] = useState(inAddress);
  /** The text that this field has put into the address, which may have it later. */
  const told = useRef(inAddress);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (inAddress === told.current) return;
    told.current = inAddress;
    clearTimeout(timer.current);
    setTyped(inAddress);
  }, [inAddress]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (text: string) => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      const settled = text.trim();
      // It is there already: what it would change with it may have been set since.
      if (settled === told.current) return;
      told.current = settled;
      set({ ...also, [name]: settled });
    }, settledMs);
  };
  return [typed, type];
}
