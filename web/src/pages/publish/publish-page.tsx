import { Alert, Button, Grid, Group, Paper, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState, type FormEvent } from 'react';
import { flushSync } from 'react-dom';
import { BusyButton } from '../../parts/busy-button.tsx';
import { ButtonLink } from '../../parts/links.tsx';
import { answerOf, api } from '../../api/client.ts';
import { isProblem, type ApiProblem } from '../../api/problem.ts';
import { EmptyState } from '../../parts/empty-state.tsx';
import { AskUnderWay } from '../../parts/leaving.tsx';
import { readTime } from '../../parts/moment.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { oneOf, useUrlState, type UrlState } from '../../parts/url-state.ts';
import { useGoOn } from '../../parts/use-go-on.ts';
import { useMay } from '../../shell/session.tsx';
import { useChannels } from './channels.ts';
import {
  draftLike,
  isComplete,
  momentOrText,
  notificatieOf,
  placeRefusals,
  type Draft,
  type FieldName,
  type Notificatie,
} from './draft.ts';
import { DraftForm } from './draft-form.tsx';
import { ForecastView } from './forecast.tsx';
import { Published, type PublicationAnswer } from './published.tsx';
import { RequestView } from './request-view.tsx';
import { usePublishTexts } from './texts.ts';
import { useDraft } from './use-draft.ts';
import { usePublish } from './use-publish.ts';
import { useRefusalText } from './use-refusal-text.tsx';

/**
 * The address has the channel, `like` (a notification to begin with) and `published` (the one whose deliveries are
 * shown).
 */
export function PublishPage() {
  const t = usePublishTexts();
  const channels = useChannels();
  if (channels.error && !channels.data)
    return <ProblemAlert error={channels.error} onRetry={() => void channels.refetch()} />;
  return (
    <>
      <PageHeader title={t('title')} description={t('description')} />
      {!channels.data ? (
        <Skeleton height={420} role="status" aria-label={t('loading')} />
      ) : channels.data.channels.length === 0 ? (
        <EmptyState title={t('noChannels')} action={<ButtonLink to="/welcome">{t('firstSteps')}</ButtonLink>}>
          {t('noChannelsDetail')}
        </EmptyState>
      ) : (
        <PublishForm channels={channels.data.channels} now={channels.data.now} />
      )}
    </>
  );
}

const times = ['createdAt', 'deliverAfter'] as const;

/** To the browser a part of a time is no value: it would be published at once. */
const isNoTime = (field: unknown): boolean => field instanceof HTMLInputElement && readTime(field) === 'wrong';

interface Props {
  channels: readonly { name: string; filters: readonly string[] }[];
  /** By the clock of the server. */
  now: () => number;
}

function PublishForm({ channels, now }: Props) {
  const t = usePublishTexts();
  const refusalText = useRefusalText();
  const [url, setUrl] = useUrlState();
  const [stored, store, clear] = useDraft();
  const may = useMay('operator');
  const form = useRef<HTMLFormElement>(null);
  const publishing = usePublish();
  const goOn = useGoOn();
  const [errors, setErrors] = useState<Refusals>();
  const [answer, setAnswer] = useState<PublicationAnswer>();
  const [openedAt] = useState(now);

  const inUrl = oneOf(url['channel']);
  const draft: Draft = { ...stored, channel: inUrl ?? stored.channel };
  const filterNames = channels.find(({ name }) => name === draft.channel)?.filters ?? [];
  const change = (changes: Partial<Draft>) => {
    setErrors(undefined);
    // One that is under way is waited for: it must not go twice, and what becomes of it has to be seen.
    if (!publishing.isPending) publishing.reset();
    store({ ...draft, ...changes });
    if (changes.channel !== undefined) setUrl({ channel: changes.channel });
  };
  const like = useLike(oneOf(url['like']), channels, (filled) => {
    store(filled);
    setUrl({ like: undefined, channel: filled.channel });
  });

  const createdAt = () => (draft.createdAt === '' ? new Date(now()).toISOString() : momentOrText(draft.createdAt));
  const headers = {
    ...(draft.deliverAfter !== '' && { 'Deliver-After': momentOrText(draft.deliverAfter) }),
    ...(draft.key !== '' && { 'Idempotency-Key': draft.key }),
  };
  // The moment of a request that is only shown stands still.
  const shown = notificatieOf(draft, filterNames, openedAt);

  const refuse = (refusals: Refusals) => {
    // At once: the field that is wrong is marked so when it is looked for.
    flushSync(() => setErrors(refusals));
    form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setErrors(undefined);
    if (!isSendable(draft.key)) {
      refuse({ at: { key: { name: 'Idempotency-Key', code: 'not-ascii', reason: t('keyNotAscii') } }, elsewhere: [] });
      return;
    }
    const wrong = times.filter((name) => isNoTime(form.current?.elements.namedItem(name)));
    if (wrong.length > 0) {
      const refused = wrong.map((name) => [name, { name, code: 'not-a-time', reason: t('notATime') }]);
      refuse({ at: Object.fromEntries(refused), elsewhere: [] });
      return;
    }
    const request = { body: { ...shown, aanmaakdatum: createdAt() }, headers };
    try {
      const published = await publishing.mutateAsync({ draft: JSON.stringify(draft), request });
      setAnswer(published);
      // Another channel may have been chosen meanwhile.
      const search = (before: UrlState) => ({ channel: draft.channel, ...before, published: published.id });
      await goOn({ to: '.', search, resetScroll: false });
    } catch (error) {
      if (isProblem(error)) refuse(refusalsOf(error, draft));
    }
  };

  const errorOf = (field: FieldName) => refusalText(errors?.at[field]);
  const placed = Object.keys(errors?.at ?? {}).length;
  const published = oneOf(url['published']);
  const error: unknown = publishing.error;
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: 7 }}>
        <Paper withBorder p="md">
          {like.error !== null && <ProblemAlert error={like.error} />}
          {like.why && (
            <Alert color="orange" variant="light" mb="sm" p="xs">
              {t(like.why)}
            </Alert>
          )}
          <form ref={form} onSubmit={(event) => void submit(event)} noValidate>
            <Stack gap="md">
              <DraftForm channels={channels} draft={draft} change={change} errorOf={errorOf} />
              {!may && (
                <Alert color="gray" variant="light" p="xs">
                  {t('notAllowed')}
                </Alert>
              )}
              {placed > 0 && (
                <Text size="sm" c="var(--mantine-color-error)" role="alert">
                  {placed === 1 ? t('refusedOne') : t('refused', { count: placed })}
                </Text>
              )}
              {error !== null && (placed === 0 || errors!.elsewhere.length > 0) && (
                <ProblemAlert error={error} isOnce />
              )}
              <Group>
                <BusyButton type="submit" isBusy={publishing.isPending} disabled={!may}>
                  {t('publish')}
                </BusyButton>
                <Button
                  variant="subtle"
                  color="gray"
                  disabled={publishing.isPending}
                  onClick={() => {
                    clear();
                    setErrors(undefined);
                    publishing.reset();
                    setUrl({ channel: undefined, published: undefined });
                  }}
                >
                  {t('clear')}
                </Button>
              </Group>
            </Stack>
            <AskUnderWay isBusy={publishing.isPending} />
          </form>
        </Paper>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 5 }}>
        <Stack gap="lg">
          {published !== undefined && (
            <Published
              key={published}
              id={published}
              answer={answer?.id === published ? answer : undefined}
              onClose={() => setUrl({ published: undefined })}
            />
          )}
          <Paper withBorder p="md">
            <ForecastView
              notification={isComplete(draft) ? withoutTime(shown, draft) : undefined}
              createdAt={createdAt}
            />
          </Paper>
          <RequestView body={shown} headers={headers} />
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

type Refusals = ReturnType<typeof placeRefusals>;

function refusalsOf({ code, problem }: ApiProblem, draft: Draft): Refusals {
  if (!code.startsWith('idempotency-key-')) return placeRefusals(problem.invalidParams, draft);
  return { at: { key: { name: 'Idempotency-Key', code, reason: problem.detail } }, elsewhere: [] };
}

/** A browser sends no header with other characters. */
const isSendable = (header: string): boolean => /^[\x20-\x7e]*$/.test(header);

/** Asked about again when it changes: the moment counts only where it was chosen. */
function withoutTime({ aanmaakdatum, ...rest }: Notificatie, { createdAt }: Draft): Omit<Notificatie, 'aanmaakdatum'> {
  return createdAt === '' ? rest : { ...rest, ...{ aanmaakdatum } };
}

/** A form of more fields than these helps nobody, and takes seconds to draw. */
const mostCharacteristics = 300;

/** Fills the form with what another notification says, once. @returns why it cannot */
function useLike(
  id: string | undefined,
  channels: readonly { name: string; filters: readonly string[] }[],
  fill: (draft: Draft) => void,
): { error: unknown; why: 'likeErased' | 'likeTooLarge' | undefined } {
  const { data, error } = useQuery({
    queryKey: ['publish', 'like', id],
    enabled: id !== undefined,
    queryFn: ({ signal }) =>
      answerOf(api.GET('/admin/v1/notifications/{id}', { params: { path: { id: id! } }, signal })),
  });
  const body = id === undefined || typeof data?.body !== 'string' ? undefined : (JSON.parse(data.body) as Notificatie);
  const isTooLarge = Object.keys(body?.kenmerken ?? {}).length > mostCharacteristics;
  useEffect(() => {
    if (body && !isTooLarge) fill(draftLike(body, channels.find(({ name }) => name === body.kanaal)?.filters ?? []));
    // Once, when it has been read: from then on it is what is typed.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [id, data]);
  if (id === undefined) return { error: null, why: undefined };
  return { error, why: isTooLarge ? 'likeTooLarge' : data?.body === null ? 'likeErased' : undefined };
}
