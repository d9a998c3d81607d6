import { Drawer, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { AlertDescription } from './alert-description.tsx';
import { findAlert, type Alert } from './alerts.ts';
import { useAlertTexts } from './texts.ts';

interface Props {
  /** undefined: it is closed. */
  id: string | undefined;
  /** Those that are listed. */
  listed: readonly Alert[];
  onClose: () => void;
}

/** The alert that an address names, whatever is listed. */
export function AlertDrawer({ id, listed, onClose }: Props) {
  const t = useAlertTexts();
  const known = listed.find((alert) => alert.id === id);
  const found = useQuery({
    queryKey: ['alerts', 'one', id],
    queryFn: ({ signal }) => findAlert(id!, signal),
    enabled: id !== undefined && known === undefined,
  });
  const alert = known ?? found.data;
  return (
    <Drawer opened={id !== undefined} onClose={onClose} position="right" size="md" title={t('details')}>
      {!known && found.error && <ProblemAlert error={found.error} onRetry={() => void found.refetch()} />}
      {alert === null && <Text size="sm">{t('gone')}</Text>}
      {alert === undefined && !found.error && <Skeleton height={240} />}
      {alert && <AlertDescription alert={alert} />}
    </Drawer>
  );
}
