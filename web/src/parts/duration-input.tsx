import { Group, NativeSelect } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { defineTexts } from '../i18n/i18n.ts';
import { NumberField } from './number-field.tsx';

const useTexts = defineTexts(
  'duration',
  { unit: 'Unit', seconds: 'seconds', minutes: 'minutes', hours: 'hours', days: 'days' },
  { unit: 'Eenheid', seconds: 'seconden', minutes: 'minuten', hours: 'uur', days: 'dagen' },
);

const units = { seconds: 1, minutes: 60, hours: 3_600, days: 86_400 } as const;
type Unit = keyof typeof units;
const names = Object.keys(units) as Unit[];

/** The largest unit that leaves a whole number. */
const unitOf = (seconds: number): Unit => names.findLast((name) => seconds % units[name] === 0) ?? 'seconds';

interface Props {
  label: string;
  description?: string;
  /** Seconds; null: none. */
  value: number | null;
  onChange: (seconds: number | null) => void;
  error?: ReactNode;
  placeholder?: string;
  disabled?: boolean;
}

/** A length of time, in the unit that people say it in. */
export function DurationInput({ label, description, value, onChange, error, placeholder, disabled }: Props) {
  const t = useTexts();
  const [chosen, setUnit] = useState<Unit>();
  const unit = chosen ?? (value === null ? 'hours' : unitOf(value));
  return (
    <NumberField
      label={label}
      description={description}
      error={error}
      value={value === null ? null : value / units[unit]}
      onChange={(typed) => {
        // The unit is that in which it is typed: not another one as soon as that would be shorter.
        setUnit(unit);
        onChange(typed === null ? null : Math.round(typed * units[unit]));
      }}
      min={0}
      // A lone sign would be no time at all, which means for ever in some fields.
      allowNegative={false}
      hideControls
      // Within the frame of the number: its description and error are read with it.
      inputContainer={(input) => (
        <Group gap="xs" wrap="nowrap" mt={description === undefined ? 0 : 5} maw={260}>
          <div style={{ flex: '1 1 80px', minWidth: 0 }}>{input}</div>
          <NativeSelect
            style={{ flex: '1 1 110px', minWidth: 0 }}
            aria-label={`${label}: ${t('unit')}`}
            value={unit}
            data={names.map((name) => ({ value: name, label: t(name) }))}
            onChange={(event) => {
              const next = event.currentTarget.value as Unit;
              setUnit(next);
              if (value !== null) onChange(Math.round((value / units[unit]) * units[next]));
            }}
            {...(disabled && { disabled })}
          />
        </Group>
      )}
      // The margins are those of the frame around both.
      styles={{ wrapper: { marginBlock: 0 } }}
      {...(placeholder !== undefined && { placeholder })}
      {...(disabled && { disabled })}
    />
  );
}
