import { Anchor, Grid, Group, Paper, Skeleton, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { answerOf, api } from '../../../api/client.ts';
import { useFormat } from '../../../i18n/format.ts';
import { ProblemAlert } from '../../../parts/problem-alert.tsx';
import { DaysTable } from './days-table.tsx';
import { Erasures } from './erasures.tsx';
import { useRetentionTexts } from './texts.ts';

export default function RetentionTab() {
  const t = useRetentionTexts();
  const format = useFormat();
  const { data, error, refetch } = useQuery({
    queryKey: ['retention'],
    queryFn: ({ signal }) => answerOf(api.GET('/admin/v1/retention', { signal })),
  });
  const days = (count: number) => t('days', { count, formatted: format.number(count) });
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, lg: 5 }}>
        <Stack gap="md">
          <Paper withBorder p="md">
            <Title order={2} mb="sm">
              {t('kept')}
            </Title>
            {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
            {!data && !error && <Skeleton height={150} />}
            {data && (
              <>
                <Table variant="vertical" layout="fixed">
                  <Table.Tbody>
                    <Table.Tr>
                      <Table.Th w="55%">{t('rows')}</Table.Th>
                      <Table.Td>{days(data.retentionDays)}</Table.Td>
                    </Table.Tr>
                    <Table.Tr>
                      <Table.Th>{t('bodies')}</Table.Th>
                      <Table.Td>
                        {data.bodyRetentionDays === null ? t('asRows') : days(data.bodyRetentionDays)}
                      </Table.Td>
                    </Table.Tr>
                    <Table.Tr>
                      <Table.Th>{t('export')}</Table.Th>
                      <Table.Td className="anywhere">{data.exportDirectory ?? t('noExport')}</Table.Td>
                    </Table.Tr>
                  </Table.Tbody>
                </Table>
                <Text size="xs" c="dimmed" mt="xs">
                  {t('settings')}
                </Text>
                {data.channels.length > 0 && (
                  <>
                    <Title order={3} mt="md" mb={4}>
                      {t('ownDays')}
                    </Title>
                    {data.channels.map(({ name, bodyRetentionDays, isRemoved }) => (
                      <Group key={name} justify="space-between" wrap="nowrap">
                        {isRemoved ? (
                          <Text size="sm" truncate>
                            {t('removedChannel', { name })}
                          </Text>
                        ) : (
                          <Anchor component={Link} to="/channels" search={{ q: name } as never} size="sm" truncate>
                            {name}
                          </Anchor>
                        )}
                        <Text size="sm">{days(bodyRetentionDays)}</Text>
                      </Group>
                    ))}
                  </>
                )}
              </>
            )}
          </Paper>
          <Paper withBorder p="md">
            <Title order={2} mb="sm">
              {t('report')}
            </Title>
            {data ? <DaysTable days={data.days} /> : <Skeleton height={120} />}
          </Paper>
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 7 }}>
        <Erasures />
      </Grid.Col>
    </Grid>
  );
}
