import { Text } from '@mantine/core';
import { useTotals } from '../../parts/activity.ts';
import { useApplicationTexts } from './texts.ts';

/** How much stops with its secret. */
export function Lately({ clientId }: { clientId: string }) {
  const t = useApplicationTexts();
  const accepted = useTotals('application').of(clientId)?.accepted;
  return <Text size="sm">{accepted === undefined ? t('latelyUnknown') : t('lately', { count: accepted })}</Text>;
}
