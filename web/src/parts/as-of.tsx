import { Anchor, Text } from '@mantine/core';
import { useFormat } from '../i18n/format.ts';
import { defineTexts } from '../i18n/i18n.ts';

const useTexts = defineTexts(
  'as-of',
  { asOf: 'As of {{at}}', again: 'Read again' },
  { asOf: 'Stand van {{at}}', again: 'Opnieuw lezen' },
);

interface Props {
  /** When it was read, by the browser's clock; of pages, the oldest; undefined: it was not. */
  at: number | undefined;
  onAgain: () => void;
}

/** Of a list that is not, or not always, read again by itself. */
export function AsOf({ at, onAgain }: Props) {
  const t = useTexts();
  const format = useFormat();
  return (
    <Text size="xs" c="dimmed" mih={20}>
      {at !== undefined && t('asOf', { at: format.asOf(at) })}{' '}
      {at !== undefined && (
        <Anchor component="button" type="button" size="xs" onClick={onAgain}>
          {t('again')}
        </Anchor>
      )}
    </Text>
  );
}
