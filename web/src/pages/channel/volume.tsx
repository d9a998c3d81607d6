import { Anchor, Group, Paper, SegmentedControl, Skeleton, Text, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useFormat } from '../../i18n/format.ts';
import { spans, useActivity, type Span } from '../../parts/activity.ts';
import { Sparkline } from '../../parts/sparkline.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useChannelTexts } from '../channels/texts.ts';
import classes from './volume.module.css';

/** What was published on a channel, and how much of it was the same again. */
export function Volume({ name }: { name: string }) {
  const t = useChannelTexts();
  const format = useFormat();
  const [state, set] = useUrlState();
  const asked = oneOf(state['span']) as Span;
  const span = spans.includes(asked) ? asked : '24h';
  const { data, isPending } = useActivity(name, span);
  const buckets = data?.buckets ?? [];
  const sum = (of: 'accepted' | 'duplicates') => buckets.reduce((all, bucket) => all + bucket[of], 0);
  const show = (of: 'accepted' | 'duplicates') => (data ? format.number(sum(of)) : '–');
  const accepted = { accepted: show('accepted'), duplicates: show('duplicates') };
  return (
    <Paper withBorder p="md">
      <Group justify="space-between" mb="sm">
        <Title order={2}>{t('volume')}</Title>
        <SegmentedControl
          size="xs"
          aria-label={t('span')}
          value={span}
          onChange={(value) => set({ span: value })}
          data={[...spans]}
        />
      </Group>
      <Group gap="xl" mb="sm">
        <div>
          <Text size="xs" c="dimmed">
            {t('ofAccepted')}
          </Text>
          <Anchor
            component={Link}
            to="/notifications"
            search={{ channel: name, acceptedFrom: buckets[0]?.at } as never}
            size="xl"
            fw={600}
          >
            {show('accepted')}
          </Anchor>
        </div>
        <div>
          <Text size="xs" c="dimmed">
            {t('ofDuplicates')}
          </Text>
          <Text size="xl" fw={600}>
            {show('duplicates')}
          </Text>
        </div>
      </Group>
      {isPending ? (
        <Skeleton height={64} />
      ) : (
        <div className={classes.line}>
          <Sparkline
            values={buckets.map((bucket) => bucket.accepted)}
            label={t('volumeLabel', accepted)}
            width={480}
            height={64}
          />
        </div>
      )}
    </Paper>
  );
}
