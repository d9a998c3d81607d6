import { TextInput, type TextInputProps } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { momentOf } from './moment.ts';

interface Props extends Omit<TextInputProps, 'value' | 'onChange' | 'type'> {
  /** ISO 8601; undefined: none. */
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

/** A moment in the zone of the viewer, by the browser's own field. What is typed stays also where `value` follows later, as an address does. */
export function TimeField({ value, onChange, ...input }: Props) {
  const [typed, setTyped] = useState(() => toLocal(value));
  const told = useRef(value);
  useEffect(() => {
    if (value === told.current) return;
    told.current = value;
    setTyped(toLocal(value));
  }, [value]);
  return (
    <TextInput
      {...input}
      type="datetime-local"
      value={typed}
      onChange={({ currentTarget }) => {
        setTyped(currentTarget.value);
        told.current = momentOf(currentTarget.value);
        onChange(told.current);
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
