import { Anchor, Button, Drawer, Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { isProblem } from '../../api/problem.ts';
import { useTotals } from '../../parts/activity.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { SaveBar } from '../../parts/save-bar.tsx';
import { useSubscriptionsOf } from '../../parts/subscriptions.ts';
import { useSaving } from '../../parts/use-saving.ts';
import { ApplicationFields } from './application-fields.tsx';
import {
  applicationKey,
  applicationsKey,
  readApplication,
  removeApplication,
  rotateSecret,
  writeApplication,
  type Application,
} from './applications.ts';
import type { ShownSecret } from './secret-dialog.tsx';
import { useApplicationTexts } from './texts.ts';

interface Props {
  /** undefined: it is closed. */
  id: string | undefined;
  mayChange: boolean;
  onClose: () => void;
  onSecret: (shown: ShownSecret) => void;
}

export function ApplicationDrawer({ id, mayChange, onClose, onSecret }: Props) {
  const t = useApplicationTexts();
  return (
    <Drawer
      opened={id !== undefined}
      onClose={onClose}
      position="right"
      size="md"
      title={t('title')}
      closeButtonProps={{ 'aria-label': t('close') }}
    >
      {id !== undefined && <Details key={id} id={id} mayChange={mayChange} onClose={onClose} onSecret={onSecret} />}
    </Drawer>
  );
}

function Details({ id, mayChange, onClose, onSecret }: Props & { id: string }) {
  const t = useApplicationTexts();
  const client = useQueryClient();
  const [asked, ask] = useState<'rotate' | 'remove'>();
  const { draft, readError, retry, bar } = useSaving<Application>({
    key: applicationKey(id),
    read: (signal) => readApplication(id, signal),
    write: writeApplication,
    alsoChanges: [applicationsKey],
  });
  const application = draft?.values;
  if (!draft || !application) {
    if (isProblem(readError, 'not_found')) return <Text size="sm">{t('gone')}</Text>;
    return readError ? <ProblemAlert error={readError} onRetry={retry} /> : <Skeleton height={420} />;
  }
  const { clientId } = application;
  return (
    <Stack gap="md">
      <div>
        <Text fw={600} style={{ overflowWrap: 'anywhere' }}>
          {clientId}
        </Text>
        <Text size="sm" c="dimmed">
          {t('created')} <RelativeTime at={application.createdAt} />
        </Text>
        <Group gap="md" mt={4}>
          <Anchor component={Link} to="/subscriptions" search={{ owner: clientId } as never} size="sm" py={2}>
            {t('subscriptions')}
          </Anchor>
          <Anchor component={Link} to="/notifications" search={{ publisher: clientId } as never} size="sm" py={2}>
            {t('notifications')}
          </Anchor>
          <Anchor component={Link} to="/audit" search={{ subject: `application/${id}` } as never} size="sm" py={2}>
            {t('changes')}
          </Anchor>
        </Group>
      </div>
      <ApplicationFields values={application} onChange={draft.change} error={bar.error} isReadOnly={!mayChange} />
      {mayChange && (
        <>
          <SaveBar draft={draft} {...bar} />
          <Group gap="xs">
            <Button variant="default" onClick={() => ask('rotate')}>
              {t('rotate')}
            </Button>
            <Button variant="light" color="red" onClick={() => ask('remove')}>
              {t('remove')}
            </Button>
          </Group>
        </>
      )}
      <Confirm
        opened={asked === 'rotate'}
        onClose={() => ask(undefined)}
        title={t('rotateTitle', { name: clientId })}
        action={t('rotate')}
        onConfirm={async () => onSecret(await rotateSecret(id, draft.tag))}
      >
        <Stack gap="xs">
          <Text size="sm">{t('rotateDetail')}</Text>
          <Lately clientId={clientId} />
        </Stack>
      </Confirm>
      <Confirm
        opened={asked === 'remove'}
        onClose={() => ask(undefined)}
        title={t('removeTitle', { name: clientId })}
        action={t('remove')}
        word={clientId}
        onConfirm={async () => {
          await removeApplication(id, draft.tag);
          onClose();
          await client.invalidateQueries({ queryKey: applicationsKey });
        }}
      >
        <Stack gap="xs">
          <Text size="sm">{t('removeDetail')}</Text>
          <Lately clientId={clientId} />
          <Owned clientId={clientId} />
        </Stack>
      </Confirm>
    </Stack>
  );
}

/** How much stops with its secret. */
function Lately({ clientId }: { clientId: string }) {
  const t = useApplicationTexts();
  const accepted = useTotals('application').of(clientId)?.accepted;
  return <Text size="sm">{accepted === undefined ? t('latelyUnknown') : t('lately', { count: accepted })}</Text>;
}

function Owned({ clientId }: { clientId: string }) {
  const t = useApplicationTexts();
  const count = useSubscriptionsOf({ owner: clientId }, 1).data?.count;
  if (count === undefined) return <Skeleton height={20} />;
  return <Text size="sm">{count === 0 ? t('ownedNone') : t('owned', { count })}</Text>;
}
