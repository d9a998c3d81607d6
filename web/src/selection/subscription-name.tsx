import { Anchor, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useSubscriptions } from './catalogue.ts';

interface Props {
  id: string;
  /** Where the answer at hand has it. */
  callbackUrl?: string | null;
}

/** A subscription by what people know it by: where it is sent. */
export function SubscriptionName({ id, callbackUrl }: Props) {
  const { data } = useSubscriptions();
  const url = callbackUrl ?? data?.subscriptions.find((each) => each.id === id)?.callbackUrl;
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
