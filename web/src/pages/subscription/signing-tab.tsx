import { Badge, Button, Code, Group, Select, Skeleton, Stack, Table, Text } from '@mantine/core';
import { TbKey, TbPlus } from 'react-icons/tb';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerOf, api } from '../../api/client.ts';
import { ConfirmOver } from '../../drafts/confirm-over.tsx';
import { useFormat } from '../../i18n/format.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { useFocusAfterRemoval } from '../../parts/focus-after-removal.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { ExactTime } from '../../parts/relative-time.tsx';
import { told } from '../../parts/told.ts';
import { useMay } from '../../shell/session.tsx';
import { SecretOnce } from '../../subscriptions/secret-once.tsx';
import { useSubscriptionTexts } from './texts.ts';

type Key = components['schemas']['SigningKey'];
type Asked = { to: 'make' } | { to: 'rotate' | 'end'; key: Key };

const graces = [0, 3600, 86_400, 604_800] as const;

export function SigningTab({ subscriptionId }: { subscriptionId: string }) {
  const t = useSubscriptionTexts();
  const format = useFormat();
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
  /** Stays as it was while its dialog fades. */
  const [asked, setAsked] = useState<Asked & { over: readonly Key[] }>();
  const [isOpen, setOpen] = useState(false);
  const [scheme, setScheme] = useState<Key['scheme']>('v1');
  const [grace, setGrace] = useState<(typeof graces)[number]>(86_400);
  const [secret, setSecret] = useState<string | null>(null);
  const make = useRef<HTMLButtonElement>(null);
  const toMake = () => make.current?.focus();
  const { list, removing } = useFocusAfterRemoval<HTMLTableSectionElement>('key', data?.length ?? 0, toMake);

  const readAgain = () => queries.invalidateQueries({ queryKey });
  const show = (added: components['schemas']['AddedSigningKey'], message: string) => {
    setSecret(added.secret ?? null);
    told(message);
    // Not waited for: in a dialog that is still open, the new key would be one that nobody has seen.
    void readAgain();
  };

  const problem = error && <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (!data) return problem ?? <Skeleton height={200} />;
  const ask = (what: Asked) => {
    setAsked({ ...what, over: data });
    setOpen(true);
  };
  const isLast = data.length === 1;
  const chosen = asked && asked.to !== 'make' ? asked.key : undefined;
  const present = data.find(({ id }) => id === chosen?.id);
  const key = chosen && `${chosen.scheme} ${chosen.id}`;
  const unseen = asked
    ? data.filter(({ id, scheme }) => scheme === 'v1' && !asked.over.some((key) => key.id === id))
    : [];
  const describe = ({ scheme, endsAt }: Key) =>
    `${scheme}, ${t('ends')}: ${endsAt === null ? t('goesOn') : format.time(endsAt)}`;
  const over = {
    onClose: () => setOpen(false),
    now: Object.fromEntries(data.map((key) => [key.id, describe(key)])),
    readAgain,
    remark: unseen.length > 0 && t('keyUnseen', { keys: unseen.map(({ id }) => id).join(', ') }),
  };
  return (
    <Stack gap="md">
      {problem}
      {data.length === 0 ? (
        <EmptyState title={t('noKeys')}>{t('noKeysHelp')}</EmptyState>
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
              <Table.Tbody ref={list}>
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
                      <ExactTime at={key.createdAt} />
                    </Table.Td>
                    <Table.Td>{key.endsAt === null ? t('goesOn') : <ExactTime at={key.endsAt} />}</Table.Td>
                    {mayChange && (
                      <Table.Td>
                        <Group gap="xs" justify="flex-end" wrap="nowrap">
                          {key.endsAt === null && (
                            <Button size="compact-sm" variant="default" onClick={() => ask({ to: 'rotate', key })}>
                              {t('rotate')}
                            </Button>
                          )}
                          <Button
                            size="compact-sm"
                            variant="default"
                            onClick={() => ask({ to: 'end', key })}
                            data-removes="key"
                          >
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
        </>
      )}
      {/* The same one before and after the first key: its dialog returns the focus to it. */}
      {mayChange && (
        <Group justify={data.length === 0 ? 'center' : 'flex-start'}>
          <Button ref={make} leftSection={<TbPlus size={16} aria-hidden />} onClick={() => ask({ to: 'make' })}>
            {t('makeKey')}
          </Button>
        </Group>
      )}
      <ConfirmOver
        {...over}
        opened={isOpen && asked?.to === 'make'}
        title={t('makeKey')}
        action={t('make')}
        isDangerous={false}
        onConfirm={async () =>
          show(
            await answerOf(
              api.POST('/admin/v1/subscriptions/{subscriptionId}/signing-keys', { params: { path }, body: { scheme } }),
            ),
            t('keyMade'),
          )
        }
      >
        <Select
          label={t('scheme')}
          data={(['v1', 'v1a'] as const).map((each) => ({ value: each, label: t(each) }))}
          value={scheme}
          allowDeselect={false}
          onChange={(each) => setScheme(each === 'v1a' ? 'v1a' : 'v1')}
        />
      </ConfirmOver>
      <ConfirmOver
        {...over}
        opened={isOpen && asked?.to === 'rotate'}
        title={t('rotateTitle', { key })}
        action={t('rotate')}
        isDangerous={false}
        isMoot={present?.endsAt !== null}
        onConfirm={async () => {
          if (asked?.to !== 'rotate') return;
          show(
            await answerOf(
              api.POST('/admin/v1/subscriptions/{subscriptionId}/signing-keys/{keyId}/rotate', {
                params: { path: { ...path, keyId: asked.key.id } },
                body: { graceSeconds: grace },
              }),
            ),
            t('keyRotated'),
          );
        }}
      >
        <Text size="sm">{t('rotateHelp')}</Text>
        <Select
          label={t('grace')}
          data={graces.map((each) => ({ value: String(each), label: t(`grace${each}`) }))}
          value={String(grace)}
          allowDeselect={false}
          onChange={(each) => setGrace(graces.find((one) => String(one) === each) ?? 86_400)}
        />
      </ConfirmOver>
      <ConfirmOver
        {...over}
        opened={isOpen && asked?.to === 'end'}
        title={t('endTitle', { key })}
        action={t('end')}
        isMoot={present === undefined}
        onConfirm={async () => {
          if (asked?.to !== 'end') return;
          await answerOf(
            api.DELETE('/admin/v1/subscriptions/{subscriptionId}/signing-keys/{keyId}', {
              params: { path: { ...path, keyId: asked.key.id } },
            }),
          );
          removing(data.findIndex(({ id }) => id === asked.key.id));
          told(t('keyEnded'));
          void readAgain();
        }}
      >
        {t(isLast ? 'endLastHelp' : 'endHelp')}
      </ConfirmOver>
      <SecretOnce
        secret={secret}
        onClose={() => {
          setSecret(null);
          toMake();
        }}
      />
    </Stack>
  );
}
