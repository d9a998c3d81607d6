import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { AnchorLink } from '../parts/links.tsx';
import { namedQuery } from '../parts/subscriptions.ts';

interface Props {
  id: string;
  /** Where the answer at hand has it; null: the subscription is deleted. */
  callbackUrl?: string | null;
}

/** A subscription by what people know it by: where it is sent. */
export function SubscriptionName({ id, callbackUrl }: Props) {
  const { data } = useQuery(namedQuery(callbackUrl === undefined ? id : undefined));
  const url = callbackUrl ?? data?.callbackUrl;
  return (
    <AnchorLink size="sm" title={id} className="anywhere" to="/subscriptions/$id" params={{ id }}>
      {url === undefined ? (
        <Text span inherit ff="monospace">
          {id}
        </Text>
      ) : (
        url.replace(/^https?:\/\//, '')
      )}
    </AnchorLink>
  );
}
