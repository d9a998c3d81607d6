import { Anchor, Button, Drawer, Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useContext, useEffect, useState, type RefObject } from 'react';
import { ConfirmOver } from '../../drafts/confirm-over.tsx';
import { DraftBar } from '../../drafts/draft-bar.tsx';
import { GoneNotice } from '../../drafts/gone-notice.tsx';
import { IsGone } from '../../drafts/use-draft.ts';
import { useResourceDraft, type Tagged } from '../../drafts/use-resource-draft.ts';
import { isProblem } from '../../api/problem.ts';
import { useFormat } from '../../i18n/format.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { ExactTime } from '../../parts/relative-time.tsx';
import { useSubscriptionsOf } from '../../parts/subscriptions.ts';
import type { UrlState } from '../../parts/url-state.ts';
import { Volume } from '../../parts/volume.tsx';
import { useGoOn } from '../../parts/use-go-on.ts';
import { ApplicationFields, valuesOf } from './application-fields.tsx';
import {
  applicationKey,
  applicationsKey,
  readApplication,
  removeApplication,
  writeApplication,
  type Application,
  type ShownSecret,
} from './applications.ts';
import { Lately } from './lately.tsx';
import { NewSecret } from './new-secret.tsx';
import { useApplicationTexts } from './texts.ts';

interface Props {
  /** undefined: it is closed. */
  id: string | undefined;
  mayChange: boolean;
  onClose: () => void;
  onSecret: (shown: ShownSecret) => void;
  /** The button that asks for a new secret, while the drawer is open. */
  rotate: RefObject<HTMLButtonElement | null>;
}

export function ApplicationDrawer({ id, onClose, ...props }: Props) {
  const t = useApplicationTexts();
  const [isAsking, setAsking] = useState(false);
  return (
    <Drawer
      opened={id !== undefined}
      onClose={onClose}
      position="right"
      size="md"
      title={t('title')}
      // Every dialog that is open hears it: that of a question is to close alone, or not at all while it is carried
      // out.
      closeOnEscape={!isAsking}
    >
      {id !== undefined && <Loaded key={id} id={id} {...props} onAsking={setAsking} />}
    </Drawer>
  );
}

type LoadedProps = Omit<Props, 'id' | 'onClose'> & { onAsking: (isAsking: boolean) => void };

function Loaded({ id, ...props }: LoadedProps & { id: string }) {
  const t = useApplicationTexts();
  const { data, error, refetch } = useQuery({
    queryKey: applicationKey(id),
    queryFn: ({ signal }) => readApplication(id, signal),
  });
  const isGone = isProblem(error, 'not_found');
  if (isGone && !data) return <Text size="sm">{t('gone')}</Text>;
  return (
    <IsGone.Provider value={isGone}>
      {isGone && <GoneNotice title={t('gone')} detail={t('goneHelp')} />}
      {error && !isGone && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      {data ? <Details current={data} {...props} /> : !error && <Skeleton height={420} />}
    </IsGone.Provider>
  );
}

function Details({ current, mayChange, onSecret, onAsking, rotate }: LoadedProps & { current: Tagged<Application> }) {
  const t = useApplicationTexts();
  const client = useQueryClient();
  const goOn = useGoOn();
  const format = useFormat();
  const [asked, ask] = useState<{ what: 'rotate' | 'remove'; secretSetAt: string }>();
  useEffect(() => {
    onAsking(asked !== undefined);
    return () => onAsking(false);
  }, [asked, onAsking]);
  const isGone = useContext(IsGone);
  const { data: application, tag } = current;
  const { id, clientId, secretSetAt } = application;
  const readAgain = () => client.invalidateQueries({ queryKey: applicationKey(id) });
  const now = { ...valuesOf(application), secretSetAt: format.time(secretSetAt) };
  const isSecretOther = asked !== undefined && asked.secretSetAt !== secretSetAt;
  const draft = useResourceDraft({
    query: { queryKey: applicationKey(id), read: (signal) => readApplication(id, signal) },
    current,
    valueOf: valuesOf,
    write: (values, ifMatch) => writeApplication(id, values, ifMatch),
    alsoChanges: [applicationsKey],
  });
  return (
    <Stack gap="md">
      <div>
        <Text fw={600} className="anywhere">
          {clientId}
        </Text>
        <Text size="sm" c="dimmed">
          {t('created')} <ExactTime at={application.createdAt} />
          {application.secretSetAt !== application.createdAt && (
            <>
              {t('secretSince')} <ExactTime at={application.secretSetAt} />
            </>
          )}
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
      <Volume subject={{ of: 'application', id: clientId }} counts={['accepted', 'duplicates']} />
      <ApplicationFields
        values={draft.value}
        onChange={(changes) => draft.change({ ...draft.value, ...changes })}
        error={draft.error}
        isReadOnly={!mayChange}
      />
      {mayChange && (
        <>
          <DraftBar draft={draft} />
          {!isGone && (
            <Group gap="xs">
              <Button ref={rotate} variant="default" onClick={() => ask({ what: 'rotate', secretSetAt })}>
                {t('rotate')}
              </Button>
              <Button variant="light" color="red" onClick={() => ask({ what: 'remove', secretSetAt })}>
                {t('remove')}
              </Button>
            </Group>
          )}
        </>
      )}
      <NewSecret
        current={current}
        opened={asked?.what === 'rotate'}
        onClose={() => ask(undefined)}
        onSecret={onSecret}
        now={now}
        readAgain={readAgain}
        isOther={isSecretOther}
      />
      <ConfirmOver
        opened={asked?.what === 'remove'}
        onClose={() => ask(undefined)}
        title={t('removeTitle', { name: clientId })}
        action={t('remove')}
        word={clientId}
        onConfirm={async () => {
          await removeApplication(id, tag);
          void goOn({ to: '.', search: (before: UrlState) => ({ ...before, application: undefined }) });
          await client.invalidateQueries({ queryKey: applicationsKey });
        }}
        now={now}
        readAgain={readAgain}
      >
        <Stack gap="xs">
          <Text size="sm">{t('removeDetail')}</Text>
          <Lately clientId={clientId} />
          <Owned clientId={clientId} />
        </Stack>
      </ConfirmOver>
    </Stack>
  );
}

function Owned({ clientId }: { clientId: string }) {
  const t = useApplicationTexts();
  const count = useSubscriptionsOf({ owner: clientId }, 1).data?.count;
  if (count === undefined) return <Skeleton height={20} />;
  return <Text size="sm">{count === 0 ? t('ownedNone') : t('owned', { count })}</Text>;
}
