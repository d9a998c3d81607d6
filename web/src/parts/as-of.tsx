import { Anchor, Text } from '@mantine/core';
import { useFormat } from '../i18n/format.ts';
import { defineTexts } from '../i18n/i18n.ts';

const useTexts = defineTexts(
  'as-of',
  { asOf: 'As of {{at}}', again: 'Read again' },
  { asOf: 'Zoals het was om {{at}}', again: 'Opnieuw lezen' },
);

interface Props {
  /** When it was read, by the browser's clock; 0: it was not. */
  at: number;
  onAgain: () => void;
}

/** Of a list that is not read again by itself once more than its first page is there. */
export function AsOf({ at, onAgain }: Props) {
  const t = useTexts();
  const format = useFormat();
  return (
    <Text size="xs" c="dimmed" mih={20}>
      {at > 0 && t('asOf', { at: format.clock(at) })}{' '}
      {at > 0 && (
        <Anchor component="button" type="button" size="xs" onClick={onAgain}>
          {t('again')}
        </Anchor>
      )}
    </Text>
  );
}
