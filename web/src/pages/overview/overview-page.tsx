import { SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { AnchorLink } from '../../parts/links.tsx';
import { answerOf, api } from '../../api/client.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { Volume } from '../../parts/volume.tsx';
import { Details, Parts } from './details.tsx';
import classes from './overview.module.css';
import { useOverviewTexts } from './texts.ts';
import { Throughput, Waiting } from './tiles.tsx';
import type { Overview } from './verdict.ts';
import { Verdict } from './verdict-banner.tsx';

/**
 * A process computes the answer at most once in two seconds, so this costs it next to nothing. Not while the tab is
 * hidden.
 */
const everyMs = 5_000;

function useOverview() {
  return useQuery({
    queryKey: ['overview'],
    queryFn: ({ signal }) => answerOf(api.GET('/admin/v1/overview', { signal })),
    refetchInterval: everyMs,
    staleTime: everyMs,
  });
}

/** Is anything wrong? Every number leads to what it counts. */
export function OverviewPage() {
  const t = useOverviewTexts();
  const { data, error, refetch } = useOverview();
  return (
    <>
      <PageHeader title={t('title')} />
      {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      {data ? <Shown overview={data} /> : !error && <Waits />}
    </>
  );
}

function Shown({ overview }: { overview: Overview }) {
  const t = useOverviewTexts();
  const isEmpty =
    overview.activity?.lastHour.every(({ accepted }) => accepted === 0) === true && overview.subscriptions.count === 0;
  return (
    <Stack gap="md">
      <Verdict overview={overview} />
      {isEmpty && (
        <Text size="sm">
          {t('firstSteps')}{' '}
          <AnchorLink inherit to="/welcome">
            {t('toFirstSteps')}
          </AnchorLink>
        </Text>
      )}
      <Row title={t('throughput')}>
        <Throughput overview={overview} />
      </Row>
      <Row title={t('waiting')}>
        <Waiting overview={overview} />
      </Row>
      {/* The last hour is above. */}
      <Volume
        subject={{ of: 'all' }}
        counts={['accepted', 'delivered', 'failedAttempts', 'gaveUp']}
        offered={['24h', '7d']}
      />
      <Details overview={overview} />
      <Parts overview={overview} />
    </Stack>
  );
}

function Row({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <Title order={2} size="h3" mb={6}>
        {title}
      </Title>
      {children}
    </section>
  );
}

/** As large as what comes in its place. */
function Waits() {
  const t = useOverviewTexts();
  const tiles = Array.from({ length: 4 }, (_, nr) => <Skeleton key={nr} className={classes.tile} />);
  return (
    <Stack gap="md" aria-hidden>
      <Skeleton className={classes.verdict} />
      <Row title={t('throughput')}>
        <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }}>{tiles}</SimpleGrid>
      </Row>
      <Row title={t('waiting')}>
        <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }}>{tiles}</SimpleGrid>
      </Row>
    </Stack>
  );
}
