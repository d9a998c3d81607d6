import { Alert, Button, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useContext, useState } from 'react';
import { TbPlugConnected } from 'react-icons/tb';
import { AnchorLink } from '../../parts/links.tsx';
import { isProblem } from '../../api/problem.ts';
import { ConfirmOver } from '../../drafts/confirm-over.tsx';
import { IsGone } from '../../drafts/use-draft.ts';
import type { Tagged } from '../../drafts/use-resource-draft.ts';
import { useTotals } from '../../parts/activity.ts';
import { useSubscriptionsOf } from '../../parts/subscriptions.ts';
import { useGoOn } from '../../parts/use-go-on.ts';
import { valuesOf } from '../channels/channel-fields.tsx';
import { channelKey, channelsKey, removeChannel, type Channel } from '../channels/channels.ts';
import { useChannelTexts } from '../channels/texts.ts';

/** Asks first, and says what that means for those who publish on it; not while subscriptions name it. */
export function RemoveChannel({ current: { data: channel, tag } }: { current: Tagged<Channel> }) {
  const { id, name } = channel;
  const t = useChannelTexts();
  const client = useQueryClient();
  const goOn = useGoOn();
  const [isAsking, setAsking] = useState(false);
  const isGone = useContext(IsGone);
  // It is a moment old where another process made a subscription: the API decides.
  const subscriptions = useSubscriptionsOf({ channel: name }, 1);
  const inUse = subscriptions.data?.count ?? 0;
  if (isGone) return null;
  return (
    <>
      <Button
        variant="light"
        color="red"
        w="fit-content"
        onClick={() => {
          setAsking(true);
          // Nothing else may be in the way any more.
          void subscriptions.refetch();
        }}
      >
        {t('remove')}
      </Button>
      <ConfirmOver
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={t('removeTitle', { name })}
        action={t('remove')}
        word={name}
        isMoot={inUse > 0}
        onConfirm={async () => {
          await removeChannel(id, tag);
          void goOn({ to: '/channels' });
          await client.invalidateQueries({ queryKey: channelsKey });
        }}
        isSaid={(error) => inUse > 0 && isProblem(error, 'channel-in-use')}
        now={valuesOf(channel)}
        readAgain={() =>
          Promise.all([
            client.invalidateQueries({ queryKey: channelKey(id) }),
            client.invalidateQueries({ queryKey: ['subscriptions'] }),
          ])
        }
      >
        <Stack gap="xs">
          {inUse > 0 && (
            <Alert color="orange" variant="light" role="alert" icon={<TbPlugConnected aria-hidden />}>
              <Text size="sm">
                {t('inUse', { count: inUse })}{' '}
                <AnchorLink inherit to="/subscriptions" search={{ channel: name }}>
                  {t('allListeners')}
                </AnchorLink>
              </Text>
            </Alert>
          )}
          <Text size="sm">{t('removeDetail')}</Text>
          <Lately name={name} />
        </Stack>
      </ConfirmOver>
    </>
  );
}

/** How much would be refused, if it goes on as it did. */
function Lately({ name }: { name: string }) {
  const t = useChannelTexts();
  const accepted = useTotals('channel').of(name)?.accepted;
  return <Text size="sm">{accepted === undefined ? t('latelyUnknown') : t('lately', { count: accepted })}</Text>;
}
