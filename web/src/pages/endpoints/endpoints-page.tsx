import { Button, Skeleton, Stack, Text, TextInput, Title } from '@mantine/core';
import { TbSearch } from 'react-icons/tb';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api } from '../../api/client.ts';
import { isProblem } from '../../api/problem.ts';
import { useFormat } from '../../i18n/format.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { readListsAnew } from '../../parts/found-lists.ts';
import { useFocusWhereItWas } from '../../parts/focus-return.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useTypedText } from '../../parts/use-typed-text.ts';
import { told } from '../../parts/told.ts';
import { OpenEndpoints } from './open-endpoints.tsx';
import { PacedSubscriptions } from './paced-subscriptions.tsx';
import { useEndpointsTexts } from './texts.ts';
import type { OpenEndpoint } from './types.ts';

const everyMs = 5_000;
const endpointsKey = ['endpoints'];

/** Which endpoints are parked, why, and when they are tried again. */
export function EndpointsPage() {
  const t = useEndpointsTexts();
  const [q, seek] = useTypedText('q');
  const [chosen, setChosen] = useState<OpenEndpoint>();
  const { data, error, refetch } = useQuery({
    queryKey: endpointsKey,
    queryFn: ({ signal }) => answerOf(api.GET('/admin/v1/endpoints', { signal })),
    refetchInterval: everyMs,
  });
  const wanted = q.trim().toLowerCase();
  const open = data?.endpoints.filter(({ address, reason }) => `${address} ${reason}`.toLowerCase().includes(wanted));
  return (
    <>
      <PageHeader title={t('title')} description={t('description')} />
      <Stack gap="md">
        {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
        <TextInput
          type="search"
          label={t('filter')}
          description={t('filterHint')}
          leftSection={<TbSearch size={16} aria-hidden />}
          value={q}
          onChange={(event) => seek(event.currentTarget.value)}
          maw={420}
        />
        <section>
          <Title order={2} mb="xs">
            {t('open')}
          </Title>
          {open && data ? (
            open.length > 0 ? (
              <OpenEndpoints endpoints={open} onReset={setChosen} />
            ) : q === '' ? (
              <EmptyState title={t('openNone')}>{t('openNoneDetail')}</EmptyState>
            ) : (
              <EmptyState
                title={t('noMatch', { q })}
                action={
                  <Button variant="default" onClick={() => seek('')}>
                    {t('clear')}
                  </Button>
                }
              />
            )
          ) : (
            <Skeleton height={140} aria-hidden />
          )}
        </section>
        <section>
          <Title order={2}>{t('paced')}</Title>
          <Text size="sm" c="dimmed" mb="xs">
            {data?.paced.length === 0 ? t('pacedNone') : t('pacedDetail')}
          </Text>
          {data && data.paced.length > 0 && <PacedSubscriptions paced={data.paced} />}
        </section>
      </Stack>
      {chosen && <ResetDialog endpoint={chosen} onClose={() => setChosen(undefined)} />}
    </>
  );
}

function ResetDialog({ endpoint, onClose }: { endpoint: OpenEndpoint; onClose: () => void }) {
  const t = useEndpointsTexts();
  const format = useFormat();
  const client = useQueryClient();
  useFocusWhereItWas();
  const reset = useMutation({
    mutationFn: async (address: string) => {
      try {
        await answerOf(api.POST('/admin/v1/endpoints/reset', { body: { address } }));
      } catch (error) {
        // A probe, or somebody else, was faster: it is as wanted.
        if (!isProblem(error) || error.status !== 404) throw error;
      }
    },
    onSuccess: (_, address) => {
      told(t('resetDone', { address }));
    },
    onSettled: () => {
      readListsAnew(client);
      return client.invalidateQueries({ queryKey: endpointsKey });
    },
  });
  const { address, subscriptionCount: count } = endpoint;
  return (
    <Confirm
      opened
      onClose={onClose}
      title={t('resetTitle', { address, count, shown: format.number(count) })}
      action={t('resetAction')}
      isDangerous={false}
      onConfirm={() => reset.mutateAsync(address)}
    >
      {t('resetDetail')}
    </Confirm>
  );
}
