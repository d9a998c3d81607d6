import { Anchor, Button, Grid, Group, Paper, Skeleton, Stack, Title } from '@mantine/core';
import { TbArrowLeft, TbBroadcast, TbExternalLink, TbHistory, TbListSearch } from 'react-icons/tb';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ButtonLink } from '../../parts/links.tsx';
import { isProblem } from '../../api/problem.ts';
import { DraftBar } from '../../drafts/draft-bar.tsx';
import { GoneNotice } from '../../drafts/gone-notice.tsx';
import { IsGone } from '../../drafts/use-draft.ts';
import { useResourceDraft, type Tagged } from '../../drafts/use-resource-draft.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { useIdInAddress } from '../../parts/id-in-address.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { Volume } from '../../parts/volume.tsx';
import { useMay } from '../../shell/session.tsx';
import { ChannelFields, isComplete, valuesOf, type ChannelValues } from '../channels/channel-fields.tsx';
import {
  channelKey,
  channelsKey,
  readChannel,
  writeChannel,
  type Channel,
  type ChannelChanges,
} from '../channels/channels.ts';
import { useChannelTexts } from '../channels/texts.ts';
import { Listeners } from './listeners.tsx';
import { RemoveChannel } from './remove-channel.tsx';

const countsOfChannel = ['accepted', 'duplicates'] as const;

export function ChannelPage() {
  const id = useIdInAddress();
  const t = useChannelTexts();
  const { data, error, refetch } = useQuery({
    queryKey: channelKey(id),
    queryFn: ({ signal }) => readChannel(id, signal),
  });
  const isGone = isProblem(error) && error.status === 404;
  const channel = data?.data;
  const link = channel?.documentationLink ?? '';
  return (
    <>
      <Anchor
        component={Link}
        to="/channels"
        size="sm"
        style={{ display: 'inline-flex', alignItems: 'center', minHeight: 28 }}
      >
        <Group gap={4} component="span">
          <TbArrowLeft size={14} aria-hidden /> {t('back')}
        </Group>
      </Anchor>
      <PageHeader
        title={channel?.name ?? t(isGone ? 'gone' : 'loading')}
        description={
          <Group gap={4}>
            <span>{id}</span>
            <CopyButton value={id} />
          </Group>
        }
      >
        {channel && (
          <>
            {/^https?:/.test(link) && (
              <Button
                component="a"
                href={link}
                target="_blank"
                rel="noopener noreferrer"
                variant="default"
                leftSection={<TbExternalLink size={16} aria-hidden />}
              >
                {t('link')}
              </Button>
            )}
            <ButtonLink
              to="/notifications"
              search={{ channel: channel.name } as never}
              variant="default"
              leftSection={<TbListSearch size={16} aria-hidden />}
            >
              {t('notifications')}
            </ButtonLink>
            <ButtonLink
              to="/audit"
              search={{ subject: `channel/${id}` } as never}
              variant="default"
              leftSection={<TbHistory size={16} aria-hidden />}
            >
              {t('changes')}
            </ButtonLink>
            <ButtonLink
              to="/publish"
              search={{ channel: channel.name } as never}
              leftSection={<TbBroadcast size={16} aria-hidden />}
            >
              {t('publish')}
            </ButtonLink>
          </>
        )}
      </PageHeader>
      {isGone && channel && <GoneNotice title={t('goneMeanwhile')} detail={t('goneMeanwhileHelp')} />}
      {error && !isGone && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      {isGone && !channel && <EmptyState title={t('gone')}>{t('goneHelp')}</EmptyState>}
      {(channel || !error) && (
        <Grid gap="md">
          <Grid.Col span={{ base: 12, lg: 6 }}>
            <Stack gap="md">
              {channel ? (
                <Volume subject={{ of: 'channel', id: channel.name }} counts={countsOfChannel} />
              ) : (
                <Skeleton height={190} />
              )}
              {channel ? <Listeners name={channel.name} /> : <Skeleton height={190} />}
            </Stack>
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 6 }}>
            <Paper withBorder p="md">
              <Title order={2} mb="sm">
                {t('about')}
              </Title>
              <IsGone.Provider value={isGone}>
                {data ? <Description current={data} /> : <Skeleton height={560} />}
              </IsGone.Provider>
            </Paper>
          </Grid.Col>
        </Grid>
      )}
    </>
  );
}

function Description({ current }: { current: Tagged<Channel> }) {
  const { id } = current.data;
  const mayChange = useMay('administrator');
  const draft = useResourceDraft<Channel, ChannelValues>({
    query: { queryKey: channelKey(id), read: (signal) => readChannel(id, signal) },
    current,
    valueOf: valuesOf,
    // Saved only while it is complete.
    write: (values, tag) => writeChannel(id, values as ChannelChanges, tag),
    alsoChanges: [channelsKey],
  });
  return (
    <Stack gap="md">
      <ChannelFields
        values={draft.value}
        onChange={(changes) => draft.change({ ...draft.value, ...changes })}
        error={draft.error}
        isReadOnly={!mayChange}
      />
      {mayChange && (
        <>
          <DraftBar draft={draft} isInvalid={!isComplete(draft.value)} />
          <RemoveChannel current={current} />
        </>
      )}
    </Stack>
  );
}
