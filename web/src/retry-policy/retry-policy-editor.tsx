import { Grid, Paper, ScrollArea, Skeleton, Stack, Table, Text } from '@mantine/core';
import { useFormat } from '../i18n/format.ts';
import { NumberField } from '../parts/number-field.tsx';
import { ProblemAlert } from '../parts/problem-alert.tsx';
import { ScheduleChart } from './schedule-chart.tsx';
import { useRetryPolicyTexts } from './texts.ts';
import { policyFields, usePolicyPreview, type RetryPolicy } from './use-preview.ts';

interface Props {
  /** A field left out follows the general policy, which is shown in its place. */
  value: Partial<RetryPolicy>;
  onChange: (value: Partial<RetryPolicy>) => void;
  /** Of which fields may be left out; not given: this is the general policy, and none may. */
  general?: RetryPolicy;
  isReadOnly?: boolean;
}

const limits: Record<keyof RetryPolicy, { min: number; max: number; step: number; isWhole?: boolean }> = {
  maxRetries: { min: 0, max: 100, step: 1, isWhole: true },
  backoffFactor: { min: 0.001, max: 604_800, step: 1 },
  baseFactor: { min: 1, max: 1000, step: 0.5 },
  maxDelaySeconds: { min: 1, max: 604_800, step: 60, isWhole: true },
  jitter: { min: 0, max: 1, step: 0.1 },
};

/** The fields of a retry policy, beside the schedule that comes of them. */
export function RetryPolicyEditor({ value, onChange, general, isReadOnly = false }: Props) {
  const t = useRetryPolicyTexts();
  const format = useFormat();
  const { data, error, isPlaceholderData, refetch } = usePolicyPreview(value);
  const attempts = data?.attempts ?? [];
  const summary = t('summary', { count: attempts.length, span: attempts.at(-1)?.elapsed ?? '' });
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: 4 }}>
        <Stack gap="sm">
          {policyFields.map((field) => {
            const { min, max, step, isWhole = false } = limits[field];
            return (
              <NumberField
                key={field}
                label={t(field)}
                description={t(`${field}Help`)}
                value={value[field] ?? null}
                placeholder={general ? t('followed', { value: format.number(general[field]) }) : undefined}
                min={min}
                max={max}
                step={step}
                allowDecimal={!isWhole}
                allowNegative={false}
                clampBehavior="blur"
                required={!general}
                withAsterisk={false}
                readOnly={isReadOnly}
                error={!general && value[field] === undefined ? t('wrong') : undefined}
                onChange={(given) => onChange({ ...value, [field]: given ?? undefined })}
              />
            );
          })}
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 8 }}>
        <Stack gap="sm">
          {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
          <Paper withBorder p="sm" aria-busy={isPlaceholderData}>
            <Text size="sm" fw={500} role="status">
              {data ? summary : ' '}
            </Text>
            {data ? <ScheduleChart attempts={attempts} summary={summary} /> : <Skeleton height={190} />}
          </Paper>
          <ScrollArea.Autosize mah={260} type="auto" viewportProps={{ tabIndex: 0, 'aria-label': t('table') }}>
            <Table withTableBorder striped fz="sm" aria-label={t('table')}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th ta="right">{t('attempt')}</Table.Th>
                  <Table.Th>{t('delay')}</Table.Th>
                  <Table.Th>{t('elapsed')}</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {attempts.map((each) => (
                  <Table.Tr key={each.attempt}>
                    <Table.Td ta="right">{each.attempt}</Table.Td>
                    <Table.Td>
                      {each.attempt === 1 ? t('atOnce') : each.delay}
                      {each.shortestDelaySeconds !== each.longestDelaySeconds && (
                        <Text span c="dimmed" size="xs" ml={6}>
                          {format.duration(each.shortestDelaySeconds * 1000)} –{' '}
                          {format.duration(each.longestDelaySeconds * 1000)}
                        </Text>
                      )}
                    </Table.Td>
                    <Table.Td>{each.attempt === 1 ? '–' : each.elapsed}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </ScrollArea.Autosize>
        </Stack>
      </Grid.Col>
    </Grid>
  );
}
