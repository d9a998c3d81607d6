import { Button, Group, Text } from '@mantine/core';
import { useFormat } from '../../i18n/format.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { ListTable, type Column } from '../../parts/list-table.tsx';
import { ExactTime } from '../../parts/relative-time.tsx';
import { useMay } from '../../shell/session.tsx';
import { Affected, AllLedThere } from './led-there.tsx';
import { useEndpointsTexts } from './texts.ts';
import type { OpenEndpoint } from './types.ts';

/** On a phone a time takes five lines. */
const rowHeight = 112;

interface Props {
  endpoints: readonly OpenEndpoint[];
  onReset: (endpoint: OpenEndpoint) => void;
}

export function OpenEndpoints({ endpoints, onReset }: Props) {
  const t = useEndpointsTexts();
  const format = useFormat();
  const mayReset = useMay('operator');
  const columns: Column<OpenEndpoint>[] = [
    {
      key: 'address',
      header: t('address'),
      width: 'minmax(104px, 2fr)',
      render: (endpoint) => (
        <>
          <Group gap={4} wrap="nowrap">
            <Text size="sm" fw={500} truncate title={endpoint.address}>
              {endpoint.address}
            </Text>
            <CopyButton value={endpoint.address} />
          </Group>
          <Text size="xs" c="dimmed" truncate title={endpoint.reason} lang="en">
            {endpoint.reason}
          </Text>
          <AllLedThere endpoint={endpoint} />
        </>
      ),
    },
    {
      key: 'since',
      header: t('since'),
      width: 'minmax(72px, 1fr)',
      render: ({ openedAt, failureCount }) => (
        <>
          <WholeTime at={openedAt} />
          <Text size="xs" c="dimmed" truncate>
            {t('failures', { shown: format.number(failureCount) })}
          </Text>
        </>
      ),
    },
    {
      key: 'probe',
      header: t('nextProbe'),
      width: 'minmax(110px, 1fr)',
      isWide: true,
      render: ({ nextProbeAt, probeCount }) => (
        <>
          {Date.parse(nextProbeAt) > Date.now() ? <WholeTime at={nextProbeAt} /> : t('probeWithNext')}
          <Text size="xs" c="dimmed" truncate>
            {t('probes', { count: probeCount, shown: format.number(probeCount) })}
          </Text>
        </>
      ),
    },
    {
      key: 'subscriptions',
      header: t('subscriptions'),
      width: 'minmax(120px, 2fr)',
      isWide: true,
      render: (endpoint) => <Affected endpoint={endpoint} />,
    },
    ...(mayReset
      ? [
          {
            key: 'reset',
            header: '',
            width: '92px',
            align: 'right' as const,
            render: (endpoint: OpenEndpoint) => (
              <Button
                size="compact-sm"
                variant="default"
                aria-label={t('resetOf', { address: endpoint.address })}
                onClick={() => onReset(endpoint)}
              >
                {t('reset')}
              </Button>
            ),
          },
        ]
      : []),
  ];
  return (
    <ListTable
      label={t('open')}
      columns={columns}
      rows={endpoints}
      keyOf={({ address }) => address}
      rowHeight={rowHeight}
      height="min(60dvh, 640px)"
    />
  );
}

/** An endpoint has no details elsewhere; a cell would cut the time off. */
function WholeTime({ at }: { at: string }) {
  return (
    <Text size="xs" lh={1.3} style={{ whiteSpace: 'normal' }}>
      <ExactTime at={at} />
    </Text>
  );
}
