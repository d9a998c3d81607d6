import { ActionIcon, Button, Menu } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { TbDots, TbPlayerPause, TbPlayerPlay, TbPlug, TbSend, TbTrash, TbX } from 'react-icons/tb';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { answerOf, api } from '../../api/client.ts';
import { isProblem } from '../../api/problem.ts';
import { useFormat } from '../../i18n/format.ts';
import { ConfirmOver } from '../../drafts/confirm-over.tsx';
import { BusyButton } from '../../parts/busy-button.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { readListsAnew } from '../../parts/found-lists.ts';
import { useMay } from '../../shell/session.tsx';
import { subscriptionQuery, type Situation, type SubscriptionWithHeld } from '../../subscriptions/data.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { told, toldFailure } from '../../parts/told.ts';
import { TestCall } from './test-call.tsx';
import { useSubscriptionTexts } from './texts.ts';

interface Props {
  subscription: SubscriptionWithHeld;
  tag: string | undefined;
  situation: Situation | null | undefined;
  /** Not of this component: it goes as soon as reading finds that the subscription is gone. */
  onDeleted: () => Promise<void>;
}

type Asked = 'drop' | 'delete' | 'reset' | 'test';
type Verb = 'pause' | 'resume' | 'enable';

/** More are not counted. */
const mostHeld = 10_000;

export function Actions({ subscription, tag, situation, onDeleted }: Props) {
  const { held, ...described } = subscription;
  const { id, pausedAt, disabledAt } = described;
  const t = useSubscriptionTexts();
  const format = useFormat();
  const queries = useQueryClient();
  const mayOperate = useMay('operator');
  const mayDelete = useMay('administrator');
  const [asked, setAsked] = useState<Asked>();
  const [busy, setBusy] = useState<Verb>();
  const more = useRef<HTMLButtonElement>(null);
  const turn = useRef<HTMLButtonElement>(null);
  /** The button that enables goes once it is done: the focus goes on at the one beside it. */
  const isEnabling = useRef(false);
  useEffect(() => {
    if (disabledAt !== null) return;
    if (isEnabling.current && document.activeElement === document.body) turn.current?.focus();
    isEnabling.current = false;
  }, [disabledAt]);
  /** The item of the menu that asked is gone. */
  const leave = () => {
    setAsked(undefined);
    more.current?.focus();
  };
  const lastChange = useRef(Promise.resolve());
  const path = { params: { path: { subscriptionId: id } } };

  const refresh = () => {
    readListsAnew(queries);
    return Promise.all([
      queries.invalidateQueries({ queryKey: ['subscription', id] }),
      queries.invalidateQueries({ queryKey: ['situation', id] }),
      queries.invalidateQueries({ queryKey: ['subscriptions'] }),
    ]);
  };
  const tell = (message: string, undo?: () => void) => {
    if (!undo) return void told(message);
    const withUndo = (
      <>
        {message}{' '}
        <Button
          size="compact-xs"
          variant="default"
          onClick={() => {
            notifications.hide(notice);
            undo();
          }}
        >
          {t('undo')}
        </Button>
      </>
    );
    // Long enough to read it, to find out that it was the wrong one, and to reach the button by keyboard.
    const notice = told(withUndo, { autoClose: 20_000 });
  };
  const failed = (error: unknown) => void toldFailure(<ProblemAlert error={error} />);

  /** One after the other: a pause that overtakes the resumption before it would be undone by that, unseen. */
  const change = (verb: Verb, done: string, undo?: () => void): Promise<void> => {
    setBusy(verb);
    const make = () => makeChange(verb, done, undo);
    lastChange.current = lastChange.current.then(make, make);
    return lastChange.current;
  };
  /** Shown at once, and taken back where the API refuses it. */
  const makeChange = async (verb: Verb, done: string, undo?: () => void): Promise<void> => {
    const { queryKey } = subscriptionQuery(id);
    const before = queries.getQueryData(queryKey);
    await queries.cancelQueries({ queryKey });
    if (before && verb !== 'enable')
      queries.setQueryData(queryKey, {
        ...before,
        data: { ...before.data, pausedAt: verb === 'pause' ? new Date().toISOString() : null },
      });
    try {
      if (verb === 'pause') await answerOf(api.POST('/admin/v1/subscriptions/{subscriptionId}/pause', path));
      else if (verb === 'resume') await answerOf(api.POST('/admin/v1/subscriptions/{subscriptionId}/resume', path));
      else await answerOf(api.POST('/admin/v1/subscriptions/{subscriptionId}/enable', path));
      tell(done, undo);
    } catch (error) {
      queries.setQueryData(queryKey, before);
      failed(error);
    }
    await refresh();
    // Undone meanwhile: then that one is under way.
    setBusy((last) => (last === verb ? undefined : last));
  };
  const pause = () => change('pause', t('paused'), () => void resume());
  const resume = (): Promise<void> => change('resume', t('resumed'), () => void pause());

  const counted = (count: number, most: number) =>
    count >= most ? t('atLeast', { count: format.number(most) }) : format.number(count);
  const heldShown = { count: held.count, formatted: counted(held.count, mostHeld) };
  // Neither what is queued is counted, nor what waits for longer than a week.
  const unsent = situation && held.count + situation.waiting;
  const endpoint = situation?.endpoint;
  return (
    <>
      {mayOperate && (
        <>
          {disabledAt !== null && (
            <BusyButton
              leftSection={<TbPlug size={16} aria-hidden />}
              isBusy={busy === 'enable'}
              onClick={() => {
                isEnabling.current = true;
                void change('enable', t('enabled'));
              }}
            >
              {t('enable')}
            </BusyButton>
          )}
          {pausedAt === null ? (
            <BusyButton
              ref={turn}
              variant="default"
              leftSection={<TbPlayerPause size={16} aria-hidden />}
              isBusy={busy === 'pause'}
              onClick={() => void pause()}
            >
              {t('pause')}
            </BusyButton>
          ) : (
            <BusyButton
              ref={turn}
              leftSection={<TbPlayerPlay size={16} aria-hidden />}
              isBusy={busy === 'resume'}
              disabled={held.isDropping}
              onClick={() => void resume()}
            >
              {t('resume')}
            </BusyButton>
          )}
          <Button variant="default" leftSection={<TbSend size={16} aria-hidden />} onClick={() => setAsked('test')}>
            {t('test')}
          </Button>
          {(endpoint || pausedAt !== null || mayDelete) && (
            <Menu position="bottom-end">
              <Menu.Target>
                <ActionIcon ref={more} variant="default" size={36} aria-label={t('more')}>
                  <TbDots size={18} aria-hidden />
                </ActionIcon>
              </Menu.Target>
              <Menu.Dropdown>
                {endpoint && (
                  <Menu.Item leftSection={<TbPlug size={16} aria-hidden />} onClick={() => setAsked('reset')}>
                    {t('reset')}
                  </Menu.Item>
                )}
                {pausedAt !== null && (
                  <Menu.Item
                    leftSection={<TbX size={16} aria-hidden />}
                    disabled={held.count === 0 || held.isDropping}
                    onClick={() => setAsked('drop')}
                  >
                    {t('drop')}
                  </Menu.Item>
                )}
                {mayDelete && (
                  <Menu.Item
                    leftSection={<TbTrash size={16} aria-hidden />}
                    // A change just made here is not yet read again: its tag would be that of before, and refused.
                    disabled={busy !== undefined}
                    onClick={() => setAsked('delete')}
                  >
                    {t('delete')}
                  </Menu.Item>
                )}
              </Menu.Dropdown>
            </Menu>
          )}
        </>
      )}
      <TestCall subscriptionId={id} opened={asked === 'test'} onClose={() => setAsked(undefined)} />
      <Confirm
        opened={asked === 'drop'}
        onClose={leave}
        title={t('dropTitle', heldShown)}
        action={t('dropAction', heldShown)}
        onConfirm={async () => {
          await answerOf(api.POST('/admin/v1/subscriptions/{subscriptionId}/drop-held', path));
          tell(t('dropped'));
          await refresh();
        }}
      >
        {t('dropHelp')}
      </Confirm>
      <Confirm
        opened={asked === 'reset'}
        onClose={leave}
        title={t('resetTitle', heldShown)}
        action={t('resetAction')}
        isDangerous={false}
        onConfirm={async () => {
          try {
            if (endpoint)
              await answerOf(api.POST('/admin/v1/endpoints/reset', { body: { address: endpoint.address } }));
          } catch (error) {
            // It is closed: a probe was quicker.
            if (!isProblem(error, 'not_found')) throw error;
          }
          tell(t('wasReset'));
          await refresh();
        }}
      >
        {t('resetHelp', { address: endpoint?.address ?? '' })}
      </Confirm>
      <ConfirmOver
        opened={asked === 'delete'}
        onClose={leave}
        title={t('deleteTitle')}
        action={t('deleteAction')}
        onConfirm={async () => {
          await answerOf(
            api.DELETE('/admin/v1/subscriptions/{subscriptionId}', {
              params: { ...path.params, header: { 'If-Match': tag } },
            }),
          );
          tell(t('deleted'));
          void queries.invalidateQueries({ queryKey: ['subscriptions'] });
          await onDeleted();
        }}
        now={described}
        readAgain={() => queries.invalidateQueries({ queryKey: ['subscription', id] })}
      >
        {!unsent
          ? t(unsent === 0 ? 'deleteHelp' : 'deleteHelpUnknown')
          : t('deleteHelpAtLeast', { count: unsent, formatted: format.number(unsent) })}
      </ConfirmOver>
    </>
  );
}
