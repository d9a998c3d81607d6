import { TextInput, type TextInputProps } from '@mantine/core';

interface Props extends Omit<TextInputProps, 'value' | 'onChange' | 'type'> {
  /** ISO 8601; undefined: none. */
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

/** A moment in the zone of the viewer, by the browser's own field. */
export function TimeField({ value, onChange, ...input }: Props) {
  return (
    <TextInput
      {...input}
      type="datetime-local"
      value={value === undefined ? '' : toLocal(value)}
      onChange={({ currentTarget }) => {
        const time = new Date(currentTarget.value);
        onChange(Number.isNaN(time.getTime()) ? undefined : time.toISOString());
      }}
    />
  );
}

/** Without seconds, where there are none. */
function toLocal(iso: string): string {
  const time = new Date(iso);
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString();
  return local.slice(0, time.getSeconds() === 0 ? 16 : 19);
}
