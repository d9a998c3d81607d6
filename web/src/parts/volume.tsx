import { Group, Paper, SegmentedControl, Skeleton, Text, Title } from '@mantine/core';
import { AnchorLink } from './links.tsx';
import { useFormat } from '../i18n/format.ts';
import { defineTexts } from '../i18n/i18n.ts';
import { spans, useActivity, type Span } from './activity.ts';
import { ProblemAlert } from './problem-alert.tsx';
import { Sparkline } from './sparkline.tsx';
import { oneOf, useUrlState } from './url-state.ts';
import { leadsTo, type Count, type Subject } from './volume-links.ts';
import classes from './volume.module.css';

const useTexts = defineTexts<Count | 'volume' | 'span' | 'line' | 'each'>(
  'volume',
  {
    volume: 'Volume',
    span: 'Span',
    accepted: 'Accepted',
    duplicates: 'Duplicates',
    delivered: 'Delivered',
    failedAttempts: 'Failed calls',
    gaveUp: 'Given up',
    line: '{{name}}: {{sum}}, at most {{most}} in {{bucket}}',
    each: 'Since {{at}}, in steps of {{bucket}}',
  },
  {
    volume: 'Omvang',
    span: 'Periode',
    accepted: 'Aangenomen',
    duplicates: 'Dubbel',
    delivered: 'Afgeleverd',
    failedAttempts: 'Mislukte aanroepen',
    gaveUp: 'Opgegeven',
    line: '{{name}}: {{sum}}, hooguit {{most}} in {{bucket}}',
    each: 'Sinds {{at}}, in stappen van {{bucket}}',
  },
);

interface Props {
  subject: Subject;
  counts: readonly Count[];
  /** The address says which one. */
  offered?: readonly Span[];
}

/** How much of it there was, and when, over a span that is chosen. */
export function Volume({ subject, counts, offered = spans }: Props) {
  const t = useTexts();
  const format = useFormat();
  const [state, set] = useUrlState();
  const span = offered.find((each) => each === oneOf(state['span'])) ?? '24h';
  const { data, error, refetch } = useActivity(subject, span);
  const bucket = format.duration((data?.bucketSeconds ?? 0) * 1000);
  const from = data?.buckets[0]?.at;
  return (
    <Paper withBorder p="md" component="section" aria-label={t('volume')}>
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h3">
          {t('volume')}
        </Title>
        <SegmentedControl
          size="xs"
          aria-label={t('span')}
          value={span}
          onChange={(value) => set({ span: value })}
          data={[...offered]}
        />
      </Group>
      {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      {(data ?? !error) && (
        <div className={classes.counts}>
          {counts.map((name) => {
            const values = data?.buckets.map((each) => each[name]);
            const sum = values && format.number(values.reduce((all, each) => all + each, 0));
            const target = leadsTo(subject, name, from);
            return (
              <div key={name}>
                <Text size="xs" c="dimmed">
                  {t(name)}
                </Text>
                {target ? (
                  <AnchorLink size="xl" fw={600} aria-label={`${t(name)}: ${sum ?? '–'}`} {...target}>
                    {sum ?? '–'}
                  </AnchorLink>
                ) : (
                  <Text size="xl" fw={600}>
                    {sum ?? '–'}
                  </Text>
                )}
                <div className={classes.line}>
                  {values ? (
                    <Sparkline
                      // The last one is not over: it would always look like a fall.
                      values={values.slice(0, -1)}
                      label={t('line', { name: t(name), sum, most: format.number(Math.max(0, ...values)), bucket })}
                      width={480}
                      height={48}
                    />
                  ) : (
                    <Skeleton height={48} />
                  )}
                </div>
              </div>
            );
          })}
        </div>
      )}
      <Text size="xs" c="dimmed" mt="xs" mih={18}>
        {from !== undefined && t('each', { at: format.time(from), bucket })}
      </Text>
    </Paper>
  );
}
