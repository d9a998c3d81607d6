import { Badge, Group, Text } from '@mantine/core';
import { useFormat } from '../../i18n/format.ts';
import { CallError, languageOf } from '../../parts/call-error.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { isNeverConnected, useErrorMeaning } from '../../parts/plain-error.ts';
import { ExactTime } from '../../parts/relative-time.tsx';
import { useNotificationTexts } from './notification-texts.ts';
import classes from './notification.module.css';
import type { Attempt } from './whole-notification.ts';

interface Props {
  attempt: Attempt;
  notificationId: string;
  /** Names of headers that the subscription adds, as it is now. */
  ownHeaders: readonly string[];
  isSigned: boolean;
}

/** One call: the request, the answer, and how long each part of it took. */
export function AttemptCard({ attempt, notificationId, ownHeaders, isSigned }: Props) {
  const t = useNotificationTexts();
  const { number, startedAt, status, error, address, responseHeaders, responseBody } = attempt;
  const meaning = useErrorMeaning()(error);
  const isGood = status !== null && status < 300;
  const sent: [string, string][] = [
    ['content-type', 'application/json'],
    ['accept', '*/*'],
    ['user-agent', 'Heraut/…'],
    ['authorization', t('hidden')],
    ['webhook-id', notificationId],
    ['webhook-attempt', String(number)],
    ...(isSigned
      ? ([
          ['webhook-timestamp', t('madeEach')],
          ['webhook-signature', t('madeEach')],
        ] as [string, string][])
      : []),
    ...ownHeaders.map((name): [string, string] => [name, t('hidden')]),
  ];
  return (
    <section className={classes.attempt} aria-label={t('attempt', { number })}>
      <Group gap="xs" mb={6}>
        <Text fw={600} size="sm">
          {t('attempt', { number })}
        </Text>
        <Badge variant="light" color={isGood ? 'green' : status === null ? 'orange' : 'red'}>
          {status === null ? t('noAnswer') : `HTTP ${status}`}
        </Badge>
        <Text size="sm" c="dimmed">
          <ExactTime at={startedAt} />
        </Text>
      </Group>
      {/* The part of it behind the status is the body, which is below. */}
      {error !== null && !error.startsWith(`HTTP ${status}`) && (
        <Text size="sm" mb={6} className="anywhere">
          <bdi>
            <CallError error={error} />
          </bdi>
          {meaning !== undefined && (
            <Text span size="xs" c="dimmed">
              {' '}
              <bdi lang={languageOf(error)}>{error}</bdi>
            </Text>
          )}
        </Text>
      )}
      <Timing attempt={attempt} />
      {address !== null && (
        <Text size="xs" c="dimmed" mt={4}>
          {t('address')} {address}
        </Text>
      )}
      <details>
        <summary className={classes.label}>{t('request')}</summary>
        <Headers headers={sent} />
        <Text size="xs" c="dimmed" mt={4}>
          {t('requestNote')}
        </Text>
      </details>
      {isGood ? (
        <Text size="xs" c="dimmed" mt={4}>
          {t('notKept')}
        </Text>
      ) : responseHeaders === null && responseBody === null ? (
        <Text size="xs" c="dimmed" mt={4}>
          {t('noAnswerKept')}
        </Text>
      ) : (
        <>
          {responseHeaders !== null && Object.keys(responseHeaders).length > 0 && (
            <details open>
              <summary className={classes.label}>{t('answerHeaders')}</summary>
              <Headers headers={Object.entries(responseHeaders)} />
            </details>
          )}
          {responseBody !== null && responseBody !== '' ? (
            <>
              <Group gap={4} mt={6}>
                <span className={classes.label}>{t('answerBody')}</span>
                <CopyButton value={responseBody} />
              </Group>
              <pre className={classes.text} tabIndex={0} aria-label={t('answerBody')} dir="auto">
                {responseBody}
              </pre>
            </>
          ) : (
            <Text size="xs" c="dimmed" mt={4}>
              {t('empty')}
            </Text>
          )}
        </>
      )}
    </section>
  );
}

function Headers({ headers }: { headers: readonly [string, string][] }) {
  return (
    <dl className={classes.headers}>
      {headers.map(([name, value]) => (
        <div key={name} style={{ display: 'contents' }}>
          <dt>{name}</dt>
          <dd>
            <bdi>{value}</bdi>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** A bar of the parts of a call, with the same in words. */
function Timing({ attempt: { durationMs, connectMs, firstByteMs, error } }: { attempt: Attempt }) {
  const t = useNotificationTexts();
  const format = useFormat();
  const connect = connectMs ?? 0;
  const first = firstByteMs === null ? durationMs - connect : Math.max(0, firstByteMs - connect);
  const rest = Math.max(0, durationMs - connect - first);
  const parts = [
    ['connect', connect, 'var(--mantine-color-grape-5)'],
    ['waitFirst', first, 'var(--mantine-color-blue-5)'],
    ['rest', rest, 'var(--mantine-color-teal-5)'],
  ] as const;
  const isUnconnected = connectMs === null && isNeverConnected(error);
  const shown = parts.filter(([, ms]) => ms > 0);
  return (
    <div>
      <div className={classes.timing} aria-hidden>
        {shown.map(([name, ms, background]) => (
          <div key={name} style={{ flexGrow: ms, background }} />
        ))}
      </div>
      <Text size="xs" c="dimmed" mt={2}>
        {[
          t('took', { duration: format.duration(durationMs) }),
          ...(isUnconnected ? [t('noConnection')] : shown.map(([name, ms]) => `${t(name)} ${format.duration(ms)}`)),
        ].join(' · ')}
        {!isUnconnected && connectMs === null && ` · ${t('reused')}`}
        {!isUnconnected && firstByteMs === null && ` · ${t('noneFirst')}`}
      </Text>
    </div>
  );
}
