import { Group } from '@mantine/core';
import { TbBan, TbRefresh } from 'react-icons/tb';
import { ButtonLink } from '../../parts/links.tsx';
import { useMay } from '../../shell/session.tsx';
import { missedOf, unfinishedOf } from './act-on-all.ts';
import { useNotificationTexts } from './notification-texts.ts';
import type { ShownDelivery } from './whole-notification.ts';

interface Props {
  id: string;
  deliveries: readonly ShownDelivery[];
  /** There are more of them. */
  isPart: boolean;
}

/** Actions on several deliveries at once; a single one has the same in its row. */
export function AllDeliveries({ id, deliveries, isPart }: Props) {
  const t = useNotificationTexts();
  const may = useMay('operator');
  const missed = missedOf(id, deliveries, isPart);
  const unfinished = unfinishedOf(id, deliveries, isPart);
  if (!may || (deliveries.length < 2 && !isPart) || !(missed ?? unfinished)) return null;
  return (
    <Group gap="xs" mb="sm">
      {missed && (
        <ButtonLink
          size="xs"
          variant="light"
          leftSection={<TbRefresh size={14} aria-hidden />}
          to="/replays/new"
          search={missed}
        >
          {t('sendMissed')}
        </ButtonLink>
      )}
      {unfinished && (
        <ButtonLink
          size="xs"
          variant="default"
          leftSection={<TbBan size={14} aria-hidden />}
          to="/replays/new"
          search={unfinished}
        >
          {t('cancelUnfinished')}
        </ButtonLink>
      )}
    </Group>
  );
}
