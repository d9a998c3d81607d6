import {
  Alert,
  Anchor,
  Button,
  Collapse,
  Group,
  NumberInput,
  SimpleGrid,
  Skeleton,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core';
import { TbAlertTriangle, TbChevronDown, TbChevronRight, TbInfoCircle } from 'react-icons/tb';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api } from '../api/client.ts';
import { isProblem } from '../api/problem.ts';
import { useFormat } from '../i18n/format.ts';
import { BusyButton } from '../parts/busy-button.tsx';
import { readListsAnew } from '../parts/found-lists.ts';
import { AskUnderWay } from '../parts/leaving.tsx';
import { ProblemAlert } from '../parts/problem-alert.tsx';
import { TimeField } from '../parts/time-field.tsx';
import { useOnce } from '../parts/use-once.ts';
import { useWrongTimes } from '../parts/use-wrong-times.ts';
import { useMay } from '../shell/session.tsx';
import { useActTexts } from './act-texts.ts';
import { DryRunResult } from './dry-run-result.tsx';
import { leavesOutUnknown, untilCounted, type DryRun, type Replay, type Selection } from './selection.ts';

const usualRate = 100;

const textsOf = {
  replay: { action: 'send', hint: 'sendHint' },
  close: { action: 'close', hint: 'closeHint' },
  cancel: { action: 'cancelThem', hint: 'cancelHint' },
} as const satisfies Record<Replay['kind'], object>;

interface Props {
  kind: Replay['kind'];
  selection: Selection;
  /** Also what has been delivered is sent again. */
  isWithDelivered?: boolean;
  onDone: (work: Replay) => void;
  onCancel?: () => void;
  /** While it is carried out. */
  onBusy?: (isBusy: boolean) => void;
  /** Where what is typed is kept; otherwise it goes with this form. */
  kept?: readonly [typed: Typed, keep: (typed: Typed) => void];
}

/** Says what a selection means, asks for how, and does it once its count is confirmed. */
export function ActOnSelection({ kind, selection, isWithDelivered = false, onDone, onCancel, onBusy, kept }: Props) {
  const t = useActTexts();
  const may = useMay('operator');
  const format = useFormat();
  const client = useQueryClient();
  const own = useState(nothingTyped);
  const [{ rate, startAt, stopAt, note }, setTyped] = kept ?? own;
  const change = (changes: Partial<Typed>) => setTyped({ rate, startAt, stopAt, note, ...changes });
  const setNote = (next: string) => change({ note: next });
  const times = useWrongTimes();
  const [typedCount, setTypedCount] = useState('');
  const [isMoreShown, setMoreShown] = useState(startAt !== undefined || stopAt !== undefined || note !== '');
  const [confirmedBefore, setConfirmedBefore] = useState<number>();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const once = useOnce();
  const dryRun = useQuery({
    queryKey: ['dry-run', kind, selection, isWithDelivered],
    queryFn: ({ signal }) =>
      answerOf(
        api.POST('/admin/v1/replays/dry-run', { body: { kind, selection, onlyMissed: !isWithDelivered }, signal }),
      ),
    // The count stands until it is counted again: a number that changes while it is read cannot be confirmed.
    staleTime: Infinity,
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
  const counted = dryRun.isFetching ? undefined : dryRun.data;

  const carryOut = async (count: number) => {
    setBusy(true);
    onBusy?.(true);
    setError(undefined);
    try {
      const work = await create(count, dryRun.data!.asOf);
      readListsAnew(client);
      void client.invalidateQueries();
      onDone(work);
    } catch (failure) {
      if (isProblem(failure, 'selection-not-confirmed')) {
        setConfirmedBefore(count);
        setTypedCount('');
        await dryRun.refetch();
      } else setError(failure);
    } finally {
      setBusy(false);
      onBusy?.(false);
    }
  };
  const create = (confirm: number, asOf: string): Promise<Replay> => {
    const said = note.trim() || undefined;
    const meant = untilCounted(selection, asOf);
    // Counted anew it is another one: an earlier one that was carried out has left nothing that is meant again, and one
    // that was not must not go in its place, since it meant less. Only what has been delivered would be sent twice.
    const counting = kind === 'replay' && isWithDelivered ? undefined : asOf;
    const asked = (body: object) => JSON.stringify({ ...body, selection, confirm: undefined, counting });
    if (kind === 'cancel') {
      const body = { selection: meant, confirm, note: said };
      return once(
        body,
        (sent, header) => answerOf(api.POST('/admin/v1/deliveries/cancel', { params: { header }, body: sent })),
        asked(body),
      );
    }
    if (kind === 'close') {
      const body = { selection: meant, confirm, note: note.trim() };
      return once(
        body,
        (sent, header) => answerOf(api.POST('/admin/v1/deliveries/close', { params: { header }, body: sent })),
        asked(body),
      );
    }
    const body = {
      selection: meant,
      onlyMissed: !isWithDelivered,
      ratePerSecond: Number(rate),
      startAt,
      stopAt,
      confirm,
      note: said,
    };
    return once(
      body,
      (sent, header) => answerOf(api.POST('/admin/v1/replays', { params: { header }, body: sent })),
      asked(body),
    );
  };

  if (dryRun.isError && !counted) return <ProblemAlert error={dryRun.error} onRetry={() => void dryRun.refetch()} />;
  const isTypedRight = !counted?.needsConfirm || typedCount.replaceAll(/\D/g, '') === String(counted.count);
  // A count that was cut short may not have come to those that are meant.
  const isAnyMeant = counted !== undefined && (counted.count > 0 || !counted.isComplete);
  // The field that keeps it from being sent is seen.
  const isMoreSeen = isMoreShown || times.isWrong;
  const isReady =
    isAnyMeant &&
    isTypedRight &&
    !times.isWrong &&
    (kind !== 'close' || note.trim() !== '') &&
    (kind !== 'replay' || Number(rate) >= 0.1);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady && may) void carryOut(counted.count);
      }}
    >
      <Stack gap="md">
        {confirmedBefore !== undefined && counted && (
          <Alert color="orange" icon={<TbAlertTriangle aria-hidden />} title={t('changed')} role="alert">
            {t('changedDetail', { before: format.number(confirmedBefore), now: format.number(counted.count) })}
          </Alert>
        )}
        <div aria-live="polite">
          {counted ? <DryRunResult dryRun={counted} /> : <Counting />}
          {isAnyMeant && kind === 'replay' && (
            <Text size="sm" mt="xs">
              {t('passesOver')}
            </Text>
          )}
          {counted && leavesOutUnknown(kind, selection) && (
            <Text size="sm" mt="xs">
              {t('withoutUnknown')}
            </Text>
          )}
        </div>
        {counted && (
          <Group gap="xs">
            <Text size="xs" c="dimmed">
              {t('asOf', { at: format.clock(counted.asOf) })}
            </Text>
            <Anchor component="button" type="button" size="xs" onClick={() => void dryRun.refetch()}>
              {t('again')}
            </Anchor>
          </Group>
        )}
        {kind === 'replay' ? (
          <>
            {selection.groups?.some(({ state }) => state === 'unknown') || selection.states?.includes('unknown') ? (
              <Alert color="orange" variant="light" icon={<TbAlertTriangle aria-hidden />}>
                {t('unknownHint')}
              </Alert>
            ) : null}
            <NumberInput
              label={t('rate')}
              description={t('rateHint')}
              value={rate}
              onChange={(next) => change({ rate: next })}
              min={0.1}
              max={10_000}
              clampBehavior="blur"
              allowNegative={false}
              maw={420}
            />
            <Takes dryRun={counted} rate={Number(rate)} />
            <Button
              variant="subtle"
              size="compact-sm"
              w="fit-content"
              aria-expanded={isMoreSeen}
              leftSection={
                isMoreSeen ? <TbChevronDown size={16} aria-hidden /> : <TbChevronRight size={16} aria-hidden />
              }
              onClick={() => setMoreShown(!isMoreShown)}
            >
              {t('more')}
            </Button>
            <Collapse expanded={isMoreSeen}>
              <Stack gap="sm">
                <SimpleGrid cols={{ base: 1, xs: 2 }}>
                  <TimeField
                    label={t('startAt')}
                    description={t('timeHint')}
                    value={startAt}
                    onChange={(next) => change({ startAt: next })}
                    onWrong={times.note('startAt')}
                  />
                  <TimeField
                    label={t('stopAt')}
                    description={t('stopHint')}
                    value={stopAt}
                    onChange={(next) => change({ stopAt: next })}
                    onWrong={times.note('stopAt')}
                  />
                </SimpleGrid>
                <NoteField label={t('note')} description={t('noteHint')} value={note} onChange={setNote} />
              </Stack>
            </Collapse>
          </>
        ) : kind === 'close' ? (
          <NoteField label={t('reason')} description={t('reasonHint')} value={note} onChange={setNote} isRequired />
        ) : (
          <NoteField label={t('note')} description={t('noteHint')} value={note} onChange={setNote} />
        )}
        {counted?.needsConfirm && isAnyMeant && (
          <TextInput
            label={t('type', { count: format.number(counted.count) })}
            value={typedCount}
            onChange={(event) => setTypedCount(event.currentTarget.value)}
            inputMode="numeric"
            autoComplete="off"
            maw={320}
          />
        )}
        <Text size="sm" c="dimmed">
          {t(textsOf[kind].hint)}
        </Text>
        {error !== undefined && <ProblemAlert error={error} isOnce />}
        {!may && (
          <Alert color="gray" icon={<TbInfoCircle aria-hidden />}>
            {t('mayNot')}
          </Alert>
        )}
        <Group justify={onCancel ? 'flex-end' : 'flex-start'}>
          {onCancel && (
            <Button variant="default" onClick={onCancel} disabled={isBusy}>
              {t('cancel')}
            </Button>
          )}
          <BusyButton
            type="submit"
            isBusy={isBusy}
            disabled={!isReady || !may}
            color={kind === 'replay' ? undefined : 'red'}
          >
            {t(textsOf[kind].action, {
              count: counted?.count ?? 0,
              shown: counted ? format.number(counted.count) : '…',
            })}
          </BusyButton>
        </Group>
      </Stack>
      <AskUnderWay isBusy={isBusy} />
    </form>
  );
}

/** The fields that somebody fills in. */
export interface Typed {
  rate: number | string;
  startAt: string | undefined;
  stopAt: string | undefined;
  note: string;
}

export const nothingTyped: Typed = { rate: usualRate, startAt: undefined, stopAt: undefined, note: '' };

interface NoteProps {
  label: string;
  description: string;
  value: string;
  onChange: (value: string) => void;
  isRequired?: boolean;
}

const NoteField = ({ label, description, value, onChange, isRequired = false }: NoteProps) => (
  <Textarea
    label={label}
    description={description}
    value={value}
    onChange={(event) => onChange(event.currentTarget.value)}
    required={isRequired}
    maxLength={1000}
    autosize
    minRows={2}
    maxRows={6}
  />
);

function Takes({ dryRun, rate }: { dryRun: DryRun | undefined; rate: number }) {
  const t = useActTexts();
  const format = useFormat();
  const isKnown = dryRun && dryRun.count > 0 && rate >= 0.1;
  return (
    <Text size="sm" c="dimmed" mih={22}>
      {isKnown ? t('takes', { time: format.duration(Math.max(1, Math.round(dryRun.count / rate)) * 1000) }) : ''}
    </Text>
  );
}

function Counting() {
  const t = useActTexts();
  return (
    <Stack gap={6} role="status">
      <Text size="sm">{t('counting')}</Text>
      <Skeleton height={14} w="70%" />
      <Skeleton height={14} w="45%" />
    </Stack>
  );
}
