import { Text } from '@mantine/core';
import { AnchorLink } from '../../parts/links.tsx';
import { useFormat } from '../../i18n/format.ts';
import { useNamed } from '../../parts/subscriptions.ts';
import { useEndpointsTexts } from './texts.ts';
import type { OpenEndpoint } from './types.ts';

/** Of one endpoint, in its row. */
const mostNamed = 3;

/** All that lead there, in the list of subscriptions. */
export function AllLedThere({ endpoint: { address, subscriptionCount: count } }: { endpoint: OpenEndpoint }) {
  const t = useEndpointsTexts();
  const format = useFormat();
  return (
    <AnchorLink
      size="xs"
      aria-label={t('ledThereOf', { address, count, shown: format.number(count) })}
      to="/subscriptions"
      search={{ endpoint: address }}
    >
      {t('ledThere', { count, shown: format.number(count) })}
    </AnchorLink>
  );
}

/** The first of them, by the application that gets nothing now. */
export function Affected({ endpoint: { subscriptionIds } }: { endpoint: OpenEndpoint }) {
  const ids = subscriptionIds.slice(0, mostNamed);
  const named = useNamed(ids);
  return ids.map((id) => {
    const known = named(id);
    const name = known ? `${known.ownerClientId} · ${known.callbackUrl.replace(/^https?:\/\//, '')}` : id;
    return (
      <Text key={id} size="xs" truncate title={name}>
        <AnchorLink inherit to="/subscriptions/$id" params={{ id }}>
          {name}
        </AnchorLink>
      </Text>
    );
  });
}
