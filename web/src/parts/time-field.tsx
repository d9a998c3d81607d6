import { Anchor, TextInput, type TextInputProps } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { useFormat } from '../i18n/format.ts';
import { defineTexts } from '../i18n/i18n.ts';
import { localOf, momentOf, otherMomentOf, readTime } from './moment.ts';

export const useTimeFieldTexts = defineTexts(
  'time-field',
  {
    wrong:
      'This is no time. Fill in all of it, the year with four digits. The hour that the clock skips in spring is none.',
    twice: 'The clock shows this time twice. Taken: {{taken}}.',
    other: 'Take {{other}}',
  },
  {
    wrong:
      'Dit is geen tijdstip. Vul alles in, het jaar met vier cijfers. Het uur dat de klok in het voorjaar overslaat bestaat niet.',
    twice: 'De klok wijst dit tijdstip twee keer aan. Gekozen: {{taken}}.',
    other: 'Kies {{other}}',
  },
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
export function TimeField({ value, onChange, onWrong, description, ...input }: Props) {
  const t = useTimeFieldTexts();
  const format = useFormat();
  const field = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(() => localOf(value));
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
    setTyped(localOf(value));
    // A part of a time is nothing that React would see to take away.
    field.current!.value = localOf(value);
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
  const other = value === undefined || isValueWrong || isWrong ? undefined : otherMomentOf(value);
  return (
    <TextInput
      {...input}
      ref={field}
      type="datetime-local"
      value={typed}
      description={
        other === undefined ? (
          description
        ) : (
          <>
            {description} {t('twice', { taken: format.time(value!) })}{' '}
            <Anchor component="button" type="button" inherit onClick={() => onChange(other)}>
              {t('other', { other: format.time(other) })}
            </Anchor>
          </>
        )
      }
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
