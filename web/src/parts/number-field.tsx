import { NumberInput, type NumberInputProps } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { useFormat } from '../i18n/format.ts';

interface Props extends Omit<NumberInputProps, 'value' | 'onChange'> {
  /** null: the field is empty. */
  value: number | null;
  onChange: (value: number | null) => void;
}

/**
 * A number, with the separator of the chosen language; a point and a comma are both understood. The input stays as it
 * is typed: on the way to 0.5 there is a "0.", which is no other number than 0.
 */
export function NumberField({ value, onChange, ...input }: Props) {
  const { decimalSeparator } = useFormat();
  const [typed, setTyped] = useState<number | string>(value ?? '');
  const told = useRef(value);
  useEffect(() => {
    if (value === told.current) return;
    told.current = value;
    setTyped(value ?? '');
  }, [value]);
  return (
    <NumberInput
      {...input}
      decimalSeparator={decimalSeparator}
      allowedDecimalSeparators={['.', ',']}
      value={typed}
      onChange={(next) => {
        setTyped(next);
        const number = Number(next);
        told.current = next === '' || Number.isNaN(number) ? null : number;
        onChange(told.current);
      }}
    />
  );
}
