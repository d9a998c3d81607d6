import { TextInput, type TextInputProps } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { defineTexts } from '../i18n/i18n.ts';
import { momentOf, readTime } from './moment.ts';

const useTexts = defineTexts(
  'time-field',
  { wrong: 'This is no time. Fill in all of it, the year with four digits.' },
  { wrong: 'Dit is geen tijdstip. Vul alles in, het jaar met vier cijfers.' },
);

interface Props extends Omit<TextInputProps, 'value' | 'onChange' | 'type' | 'error'> {
  /** ISO 8601; undefined: none. Any other text in an address is an error. */
  value: string | undefined;
  /** Of a moment, and of nothing. */
  onChange: (value: string | undefined) => void;
  /** Something is typed that is no moment: `value` is still what it was, and not what is meant. */
  onWrong: (isWrong: boolean) => void;
}

/**
 * A moment in the zone of the viewer, by the browser's own field. The input stays also where `value` follows later, as
 * an address does.
 */
export function TimeField({ value, onChange, onWrong, ...input }: Props) {
  const t = useTexts();
  const field = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(() => toLocal(value));
  const [isWrong, setWrong] = useState(false);
  /** While somebody is typing, it is not right yet. */
  const [isLeft, setLeft] = useState(false);
  const told = useRef(value);
  const noteWrong = (now: boolean) => {
    setWrong(now);
    onWrong(now);
  };
  useEffect(() => {
    if (value === told.current) return;
    told.current = value;
    setTyped(toLocal(value));
    // A part of a time is nothing that React would see to take away.
    field.current!.value = toLocal(value);
    noteWrong(false);
  }, [value]);
  useEffect(() => () => onWrong(false), []);
  const read = (element: HTMLInputElement) => {
    const now = readTime(element);
    setTyped(element.value);
    noteWrong(now === 'wrong');
    if (now === 'wrong' || now.moment === told.current) return;
    told.current = now.moment;
    onChange(now.moment);
  };
  /** A part of a time is no change to the browser. */
  const readPart = (element: HTMLInputElement) => {
    if (isWrong || element.validity.badInput) read(element);
  };
  const isValueWrong = value !== undefined && momentOf(value) === undefined;
  return (
    <TextInput
      {...input}
      ref={field}
      type="datetime-local"
      value={typed}
      error={(isValueWrong || (isWrong && isLeft)) && t('wrong')}
      onChange={({ currentTarget }) => read(currentTarget)}
      onKeyUp={({ currentTarget }) => readPart(currentTarget)}
      onFocus={() => setLeft(false)}
      onBlur={({ currentTarget }) => {
        readPart(currentTarget);
        setLeft(true);
      }}
    />
  );
}

/** Without seconds, where there are none. */
function toLocal(iso: string | undefined): string {
  const time = new Date(iso ?? Number.NaN);
  if (Number.isNaN(time.getTime())) return '';
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString();
  return local.slice(0, time.getSeconds() === 0 ? 16 : 19);
}
