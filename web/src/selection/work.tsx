import { Badge, Progress } from '@mantine/core';
import { TbCheck, TbClock, TbHandStop, TbPlayerPause, TbPlayerPlay, TbX } from 'react-icons/tb';
import { useFormat } from '../i18n/format.ts';
import { defineTexts } from '../i18n/i18n.ts';
import { namesOf } from '../parts/names-of.ts';
import type { Replay } from './selection.ts';

export const useWorkTexts = defineTexts(
  'work',
  {
    replay: 'Send again',
    cancel: 'Cancel unfinished',
    close: 'Close dead letters',
    scheduled: 'scheduled',
    running: 'running',
    pausedState: 'paused',
    done: 'done',
    cancelled: 'cancelled',
    stopped: 'stopped',
    progress: '{{found}} of {{count}}',
    progressAtLeast: '{{found}} of at least {{count}}',
    progressLabel: 'Progress',
  },
  {
    replay: 'Opnieuw versturen',
    cancel: 'Onafgemaakte annuleren',
    close: 'Onbestelbare afsluiten',
    scheduled: 'gepland',
    running: 'bezig',
    pausedState: 'gepauzeerd',
    done: 'klaar',
    cancelled: 'geannuleerd',
    stopped: 'gestopt',
    progress: '{{found}} van {{count}}',
    progressAtLeast: '{{found}} van ten minste {{count}}',
    progressLabel: 'Voortgang',
  },
);

const looks = {
  scheduled: ['gray', TbClock, 'scheduled'],
  running: ['blue', TbPlayerPlay, 'running'],
  paused: ['orange', TbPlayerPause, 'pausedState'],
  done: ['green', TbCheck, 'done'],
  cancelled: ['gray', TbX, 'cancelled'],
  stopped: ['red', TbHandStop, 'stopped'],
} as const satisfies Record<Replay['state'], readonly [color: string, sign: typeof TbClock, text: string]>;

export const workStates = Object.keys(looks) as Replay['state'][];
export const workKinds = namesOf<Replay['kind']>({ replay: true, close: true, cancel: true });

export const isUnfinished = ({ state }: Replay): boolean =>
  state === 'scheduled' || state === 'running' || state === 'paused';

export const nameOfState = (state: Replay['state']) => looks[state][2];

export function WorkStateBadge({ state }: { state: Replay['state'] }) {
  const t = useWorkTexts();
  const [color, Icon, name] = looks[state];
  return (
    <Badge color={color} variant="light" leftSection={<Icon size={12} aria-hidden />}>
      {t(name)}
    </Badge>
  );
}

/** Of those that were counted when it was made. */
export const leftOf = ({ count, found }: Replay): number => Math.max(0, count - found);

/** Between 0 and 1. One that is done is whole, also where less was left than had been counted. */
const shareOf = ({ state, found, count }: Replay): number =>
  state === 'done' ? 1 : count === 0 ? 0 : Math.min(1, found / count);

export function WorkProgress({ work, size = 'md' }: { work: Replay; size?: 'sm' | 'md' | 'xl' }) {
  const t = useWorkTexts();
  const text = useProgressText(work);
  const color = work.state === 'done' ? 'green' : work.state === 'running' ? undefined : 'gray';
  return (
    <Progress.Root size={size}>
      <Progress.Section
        value={shareOf(work) * 100}
        color={color}
        aria-label={t('progressLabel')}
        aria-valuetext={text}
        withAria
      />
    </Progress.Root>
  );
}

/** "1,204 of 5,000" */
export function useProgressText({ found, count, isCountComplete, state }: Replay): string {
  const t = useWorkTexts();
  const format = useFormat();
  // More may have died since they were counted, or less be left.
  const all = state === 'done' ? found : Math.max(count, found);
  const values = { found: format.number(found), count: format.number(all) };
  return isCountComplete || state === 'done' ? t('progress', values) : t('progressAtLeast', values);
}
