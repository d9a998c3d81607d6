import { Alert, List, Paper, Skeleton, Title } from '@mantine/core';
import { TbBellOff } from 'react-icons/tb';
import { useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useAlertTexts } from './texts.ts';

/** Whom the settings name. */
export function Recipients({ tellsOwners }: { tellsOwners: boolean }) {
  const t = useAlertTexts();
  const { data, error, refetch } = useQuery({
    queryKey: ['alert-recipients'],
    queryFn: ({ signal }) => answerOf(api.GET('/admin/v1/alert-recipients', { signal })),
  });
  if (error) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton height={90} radius="md" />;
  const { webhook, mail, canMail } = data;
  if (webhook === null && mail.length === 0)
    return (
      <Alert color="yellow" icon={<TbBellOff aria-hidden />} title={t('recipients')}>
        {t('recipientsNone')}
      </Alert>
    );
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h3" mb="xs">
        {t('recipients')}
      </Title>
      <List size="sm" className="anywhere">
        {webhook !== null && <List.Item>{t('webhook', { origin: webhook })}</List.Item>}
        {mail.map((address) => (
          <List.Item key={address}>{address}</List.Item>
        ))}
        {canMail && tellsOwners && <List.Item>{t('owners')}</List.Item>}
      </List>
    </Paper>
  );
}
