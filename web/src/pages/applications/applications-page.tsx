import { Anchor, Badge, Button, Group, Text } from '@mantine/core';
import { TbPlus } from 'react-icons/tb';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { useFormat } from '../../i18n/format.ts';
import { useTotals } from '../../parts/activity.ts';
import { applicationsQuery } from '../../parts/catalogue.ts';
import type { Column } from '../../parts/list-table.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { SecretDialog } from '../../parts/secret-dialog.tsx';
import { SearchedList } from '../../parts/searched-list.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useMay } from '../../shell/session.tsx';
import { ApplicationDrawer } from './application-drawer.tsx';
import type { Application, ShownSecret } from './applications.ts';
import { NewApplication } from './new-application.tsx';
import { useApplicationTexts } from './texts.ts';

export function ApplicationsPage() {
  const t = useApplicationTexts();
  const format = useFormat();
  const [state, set] = useUrlState();
  const [secret, showSecret] = useState<ShownSecret>();
  const add = useRef<HTMLButtonElement>(null);
  const rotate = useRef<HTMLButtonElement>(null);
  const mayChange = useMay('administrator');
  const query = useQuery({ ...applicationsQuery, staleTime: 0 });
  const totals = useTotals('application');
  const open = ({ id }: Application) => set({ application: id }, true);

  const columns: Column<Application>[] = [
    {
      key: 'clientId',
      header: t('clientId'),
      width: 'minmax(150px, 1.3fr)',
      render: ({ id, clientId }) => (
        <Anchor component={Link} to="." search={{ ...state, application: id } as never} size="sm" fw={500}>
          {clientId}
        </Anchor>
      ),
    },
    { key: 'label', header: t('label'), width: 'minmax(120px, 1.3fr)', isWide: true, render: ({ label }) => label },
    {
      key: 'may',
      header: t('may'),
      width: 'minmax(150px, 1fr)',
      render: ({ scopes, isSuperuser }) => (
        <Group gap={2}>
          {isSuperuser ? (
            <Badge color="grape" variant="light">
              {t('everything')}
            </Badge>
          ) : (
            <>
              {scopes.includes('notificaties.publiceren') && <Badge variant="light">{t('publish')}</Badge>}
              {scopes.includes('notificaties.consumeren') && (
                <Badge variant="light" color="blue">
                  {t('consume')}
                </Badge>
              )}
              {scopes.length === 0 && (
                <Text span size="sm" c="dimmed">
                  {t('nothing')}
                </Text>
              )}
            </>
          )}
        </Group>
      ),
    },
    {
      key: 'accepted',
      header: t('accepted'),
      width: '130px',
      align: 'right',
      isWide: true,
      render: ({ clientId }) => {
        const total = totals.of(clientId);
        return (
          <Anchor
            component={Link}
            to="/notifications"
            search={{ publisher: clientId, acceptedFrom: totals.since } as never}
            size="sm"
          >
            {total === undefined ? '–' : format.number(total.accepted)}
          </Anchor>
        );
      },
    },
    {
      key: 'last',
      header: t('last'),
      width: '150px',
      isWide: true,
      render: ({ clientId }) => {
        const total = totals.of(clientId);
        return total && total.lastAt === undefined ? (
          <Text span size="sm" c="dimmed">
            {t('notLately')}
          </Text>
        ) : (
          <RelativeTime at={total?.lastAt} />
        );
      },
    },
    {
      key: 'created',
      header: t('created'),
      width: '130px',
      isWide: true,
      render: ({ createdAt }) => <RelativeTime at={createdAt} />,
    },
  ];

  return (
    <>
      <PageHeader title={t('title')} description={t('description')}>
        {mayChange && (
          <Button ref={add} leftSection={<TbPlus size={16} aria-hidden />} onClick={() => set({ new: '1' }, true)}>
            {t('add')}
          </Button>
        )}
      </PageHeader>
      {totals.error && <ProblemAlert error={totals.error} onRetry={totals.again} />}
      <SearchedList
        query={query}
        textsOf={({ clientId, label }) => [clientId, label]}
        columns={columns}
        keyOf={({ id }) => id}
        onOpen={open}
        isMarked={({ id }) => id === state['application']}
        t={t}
      />
      <NewApplication
        opened={mayChange && state['new'] !== undefined}
        onClose={() => set({ new: undefined })}
        onCreated={(shown) => {
          set({ new: undefined });
          showSecret(shown);
        }}
      />
      <ApplicationDrawer
        id={oneOf(state['application'])}
        mayChange={mayChange}
        onClose={() => set({ application: undefined })}
        onSecret={showSecret}
        rotate={rotate}
      />
      <SecretDialog
        secret={secret?.secret ?? null}
        title={t('newSecret', { name: secret?.clientId })}
        detail={t('shownOnce')}
        onClose={() => {
          showSecret(undefined);
          (rotate.current ?? add.current)?.focus();
        }}
      />
    </>
  );
}
