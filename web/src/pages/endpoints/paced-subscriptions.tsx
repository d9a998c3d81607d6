import { AnchorLink } from '../../parts/links.tsx';
import { useFormat } from '../../i18n/format.ts';
import { ListTable, type Column } from '../../parts/list-table.tsx';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { useEndpointsTexts } from './texts.ts';
import type { PacedSubscription } from './types.ts';

export function PacedSubscriptions({ paced }: { paced: readonly PacedSubscription[] }) {
  const t = useEndpointsTexts();
  const format = useFormat();
  const columns: Column<PacedSubscription>[] = [
    {
      key: 'callback',
      header: t('callback'),
      width: 'minmax(120px, 2fr)',
      render: ({ subscriptionId, callbackUrl }) => (
        <AnchorLink inherit to={`/subscriptions/${subscriptionId}`}>
          {callbackUrl}
        </AnchorLink>
      ),
    },
    {
      key: 'pace',
      header: t('pace'),
      width: 'minmax(100px, 1fr)',
      render: ({ window, outstanding }) =>
        t('paceOf', { outstanding: format.number(outstanding), window: format.number(window) }),
    },
    {
      key: 'held',
      header: t('heldAt'),
      width: 'minmax(110px, 1fr)',
      isWide: true,
      render: ({ heldAt }) => <RelativeTime at={heldAt} />,
    },
  ];
  return (
    <ListTable
      label={t('paced')}
      columns={columns}
      rows={paced}
      keyOf={({ subscriptionId }) => subscriptionId}
      height="min(40dvh, 420px)"
    />
  );
}
