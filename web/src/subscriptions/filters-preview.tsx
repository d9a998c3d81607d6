import { Paper, Skeleton, Stack, Table, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { AnchorLink } from '../parts/links.tsx';
import { answerOf, api } from '../api/client.ts';
import { useFormat } from '../i18n/format.ts';
import { defineTexts } from '../i18n/i18n.ts';
import { ProblemAlert } from '../parts/problem-alert.tsx';
import { RelativeTime } from '../parts/relative-time.tsx';
import type { SubscribedChannel } from './data.ts';
import { isComplete, toChannels, type EntryDraft } from './filter-drafts.ts';

const useTexts = defineTexts(
  'filters-preview',
  {
    title: 'In the last hour',
    would: 'Would have matched {{matched}} of {{looked}} notifications of its channels.',
    none: 'Nothing was published on its channels in the last hour.',
    partly: 'There was too much to look through the whole hour: this goes back to {{from}}.',
    notRead: '{{count}} could not be looked at: erased, or larger than 64 KB.',
    incomplete: 'Complete the entries to see what they would have matched.',
    sample: 'The newest of them',
    time: 'Accepted',
    notification: 'Notification',
    characteristics: 'Characteristics',
  },
  {
    title: 'In het afgelopen uur',
    would: 'Had {{matched}} van {{looked}} notificaties van de kanalen gekregen.',
    none: 'Op de kanalen is in het afgelopen uur niets gepubliceerd.',
    partly: 'Het was te veel om het hele uur te bekijken: dit gaat terug tot {{from}}.',
    notRead: '{{count}} konden niet worden bekeken: gewist, of groter dan 64 KB.',
    incomplete: 'Maak de regels af om te zien welke notificaties erbij passen.',
    sample: 'De nieuwste daarvan',
    time: 'Aangenomen',
    notification: 'Notificatie',
    characteristics: 'Kenmerken',
  },
);

/** The notifications that a subscription with these filters would have got, while they are typed. */
export function FiltersPreview({ drafts }: { drafts: readonly EntryDraft[] }) {
  const t = useTexts();
  const format = useFormat();
  const isReady = drafts.length > 0 && isComplete(drafts);
  const [asked] = useDebouncedValue(JSON.stringify(isReady ? toChannels(drafts) : []), 300);
  const channels = JSON.parse(asked) as SubscribedChannel[];
  const { data, error, refetch, isPlaceholderData } = useQuery({
    queryKey: ['filters-preview', asked],
    queryFn: ({ signal }) => answerOf(api.POST('/admin/v1/subscriptions/preview', { body: { channels }, signal })),
    enabled: isReady && channels.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
  return (
    <Paper withBorder p="md" component="section" aria-label={t('title')}>
      <Stack gap="xs">
        <Text fw={600} size="sm">
          {t('title')}
        </Text>
        <div role="status" style={{ minHeight: 42 }} aria-busy={isPlaceholderData}>
          {!isReady ? (
            <Text size="sm" c="dimmed">
              {t('incomplete')}
            </Text>
          ) : data ? (
            <Text size="sm">
              {data.looked === 0
                ? t('none')
                : t('would', { matched: format.number(data.matched), looked: format.number(data.looked) })}{' '}
              {!data.isWholeHour && t('partly', { from: format.clock(data.from) })}{' '}
              {data.notRead > 0 && t('notRead', { count: data.notRead })}
            </Text>
          ) : (
            !error && <Skeleton height={16} mt={4} />
          )}
        </div>
        {isReady && error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
        {isReady && data && data.sample.length > 0 && (
          <Table.ScrollContainer minWidth={320} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
            <Table fz="sm" aria-label={t('sample')} aria-busy={isPlaceholderData}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{t('time')}</Table.Th>
                  <Table.Th>{t('notification')}</Table.Th>
                  <Table.Th>{t('characteristics')}</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {data.sample.map((each) => (
                  <Table.Tr key={each.id}>
                    <Table.Td>
                      <RelativeTime at={each.acceptedAt} />
                    </Table.Td>
                    <Table.Td>
                      <AnchorLink size="sm" to={`/notifications/${each.id}`}>
                        {each.id.slice(-12)}
                      </AnchorLink>
                    </Table.Td>
                    <Table.Td>
                      {Object.entries(each.characteristics).map(([name, value]) => (
                        <Text key={name} size="xs" className="anywhere">
                          <Text span inherit c="dimmed">
                            {name}:
                          </Text>{' '}
                          {value}
                        </Text>
                      ))}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        )}
      </Stack>
    </Paper>
  );
}
