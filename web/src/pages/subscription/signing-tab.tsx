import { Badge, Button, Code, Group, Modal, Select, Skeleton, Stack, Table, Text } from '@mantine/core';
import { TbKey, TbPlus } from 'react-icons/tb';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerOf, api } from '../../api/client.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { AskUnderWay } from '../../parts/leaving.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { useMay } from '../../shell/session.tsx';
import { SecretOnce } from '../../subscriptions/secret-once.tsx';
import { useSubscriptionTexts } from './texts.ts';
import { useTold } from './use-save.ts';

type Key = components['schemas']['SigningKey'];

const graces = [0, 3600, 86_400, 604_800] as const;

export function SigningTab({ subscriptionId }: { subscriptionId: string }) {
  const t = useSubscriptionTexts();
  const told = useTold();
  const queries = useQueryClient();
  const mayChange = useMay('administrator');
  const path = { subscriptionId };
  const queryKey = ['signing-keys', subscriptionId];
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: async ({ signal }) =>
      (await answerOf(api.GET('/admin/v1/subscriptions/{subscriptionId}/signing-keys', { params: { path }, signal })))
        .signingKeys,
    refetchInterval: 15_000,
  });
  const [asked, setAsked] = useState<{ to: 'make' } | { to: 'rotate' | 'end'; key: Key }>();
  const [scheme, setScheme] = useState<Key['scheme']>('v1');
  const [grace, setGrace] = useState<(typeof graces)[number]>(86_400);
  const [secret, setSecret] = useState<string | null>(null);
  const close = () => setAsked(undefined);

  const show = async (added: components['schemas']['AddedSigningKey'], message: string) => {
    setSecret(added.secret ?? null);
    told(message);
    await queries.invalidateQueries({ queryKey });
  };
  const make = useMutation({
    mutationFn: () =>
      answerOf(
        api.POST('/admin/v1/subscriptions/{subscriptionId}/signing-keys', { params: { path }, body: { scheme } }),
      ),
    onSuccess: async (added) => {
      close();
      await show(added, t('keyMade'));
    },
  });
  const rotate = useMutation({
    mutationFn: (keyId: string) =>
      answerOf(
        api.POST('/admin/v1/subscriptions/{subscriptionId}/signing-keys/{keyId}/rotate', {
          params: { path: { ...path, keyId } },
          body: { graceSeconds: grace },
        }),
      ),
    onSuccess: async (added) => {
      close();
      await show(added, t('keyRotated'));
    },
  });
  // It cannot be called back any more, and its secret is shown this once.
  const leave = () => {
    if (!make.isPending && !rotate.isPending) close();
  };

  const problem = error && <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (!data) return problem ?? <Skeleton height={200} />;
  const makeButton = mayChange && (
    <Button
      leftSection={<TbPlus size={16} aria-hidden />}
      onClick={() => {
        make.reset();
        setAsked({ to: 'make' });
      }}
    >
      {t('makeKey')}
    </Button>
  );
  const isLast = data.length === 1;
  return (
    <Stack gap="md">
      {problem}
      {data.length === 0 ? (
        <EmptyState title={t('noKeys')} action={makeButton}>
          {t('noKeysHelp')}
        </EmptyState>
      ) : (
        <>
          <Text size="sm" c="dimmed">
            {t('signingIntro')}
          </Text>
          <Table.ScrollContainer
            minWidth={560}
            scrollAreaProps={{ viewportProps: { tabIndex: 0, 'aria-label': t('signing') } }}
          >
            <Table fz="sm" withTableBorder verticalSpacing="sm" aria-label={t('signing')}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{t('key')}</Table.Th>
                  <Table.Th>{t('made')}</Table.Th>
                  <Table.Th>{t('ends')}</Table.Th>
                  {mayChange && <Table.Th ta="right">{t('actionsOf')}</Table.Th>}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {data.map((key) => (
                  <Table.Tr key={key.id}>
                    <Table.Td>
                      <Group gap="xs">
                        <TbKey size={16} aria-hidden />
                        <Badge variant="default">{key.scheme}</Badge>
                        <Code>{key.id}</Code>
                        {key.publicKey !== null && <CopyButton value={key.publicKey} label={t('copyPublicKey')} />}
                      </Group>
                    </Table.Td>
                    <Table.Td>
                      <RelativeTime at={key.createdAt} />
                    </Table.Td>
                    <Table.Td>{key.endsAt === null ? t('goesOn') : <RelativeTime at={key.endsAt} />}</Table.Td>
                    {mayChange && (
                      <Table.Td>
                        <Group gap="xs" justify="flex-end" wrap="nowrap">
                          {key.endsAt === null && (
                            <Button
                              size="compact-sm"
                              variant="default"
                              onClick={() => {
                                rotate.reset();
                                setAsked({ to: 'rotate', key });
                              }}
                            >
                              {t('rotate')}
                            </Button>
                          )}
                          <Button size="compact-sm" variant="default" onClick={() => setAsked({ to: 'end', key })}>
                            {t('end')}
                          </Button>
                        </Group>
                      </Table.Td>
                    )}
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
          <Group>{makeButton}</Group>
        </>
      )}
      <Modal
        opened={asked?.to === 'make'}
        onClose={leave}
        title={t('makeKey')}
        closeButtonProps={{ 'aria-label': t('close') }}
        centered
      >
        <Stack gap="sm">
          <Select
            label={t('scheme')}
            data={(['v1', 'v1a'] as const).map((each) => ({ value: each, label: t(each) }))}
            value={scheme}
            allowDeselect={false}
            onChange={(each) => setScheme(each === 'v1a' ? 'v1a' : 'v1')}
          />
          {make.error && <ProblemAlert error={make.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={leave} disabled={make.isPending}>
              {t('cancel')}
            </Button>
            <Button loading={make.isPending} onClick={() => make.mutate()}>
              {t('make')}
            </Button>
          </Group>
        </Stack>
      </Modal>
      <Modal
        opened={asked?.to === 'rotate'}
        onClose={leave}
        title={t('rotateTitle')}
        closeButtonProps={{ 'aria-label': t('close') }}
        centered
      >
        <Stack gap="sm">
          <Text size="sm">{t('rotateHelp')}</Text>
          <Select
            label={t('grace')}
            data={graces.map((each) => ({ value: String(each), label: t(`grace${each}`) }))}
            value={String(grace)}
            allowDeselect={false}
            onChange={(each) => setGrace(graces.find((one) => String(one) === each) ?? 86_400)}
          />
          {rotate.error && <ProblemAlert error={rotate.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={leave} disabled={rotate.isPending}>
              {t('cancel')}
            </Button>
            <Button
              loading={rotate.isPending}
              onClick={() => {
                if (asked?.to === 'rotate') rotate.mutate(asked.key.id);
              }}
            >
              {t('rotate')}
            </Button>
          </Group>
        </Stack>
      </Modal>
      <Confirm
        opened={asked?.to === 'end'}
        onClose={close}
        title={t('endTitle')}
        action={t('end')}
        onConfirm={async () => {
          if (asked?.to !== 'end') return;
          await answerOf(
            api.DELETE('/admin/v1/subscriptions/{subscriptionId}/signing-keys/{keyId}', {
              params: { path: { ...path, keyId: asked.key.id } },
            }),
          );
          told(t('keyEnded'));
          await queries.invalidateQueries({ queryKey });
        }}
      >
        {t(isLast ? 'endLastHelp' : 'endHelp')}
      </Confirm>
      <AskUnderWay isBusy={make.isPending || rotate.isPending} />
      <SecretOnce secret={secret} onClose={() => setSecret(null)} />
    </Stack>
  );
}
