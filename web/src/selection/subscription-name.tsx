import { Anchor, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
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
    <Anchor
      size="sm"
      title={id}
      style={{ overflowWrap: 'anywhere' }}
      renderRoot={(props) => <Link to="/subscriptions/$id" params={{ id }} {...props} />}
    >
      {url === undefined ? (
        <Text span inherit ff="monospace">
          {id}
        </Text>
      ) : (
        url.replace(/^https?:\/\//, '')
      )}
    </Anchor>
  );
}
