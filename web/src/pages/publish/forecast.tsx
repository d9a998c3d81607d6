import { Alert, Badge, Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { AnchorLink } from '../../parts/links.tsx';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerOf, api } from '../../api/client.ts';
import { isProblem } from '../../api/problem.ts';
import { useFormat } from '../../i18n/format.ts';
import { useExplanationText } from '../../parts/explanation-text.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import type { Notificatie } from './draft.ts';
import { usePublishTexts } from './texts.ts';
import { useRefusalText } from './use-refusal-text.tsx';

const mostShown = 20;
const settleMs = 400;

interface Props {
  /** Undefined: not everything is filled in yet. */
  notification: Omit<Notificatie, 'aanmaakdatum'> | undefined;
  /** Fixed, or the moment of asking. */
  createdAt: () => string;
}

/** The receivers that would get it if it were published now, asked again whenever somebody stops typing. */
export function ForecastView({ notification, createdAt }: Props) {
  const t = usePublishTexts();
  const [asked] = useDebouncedValue(notification && JSON.stringify(notification), settleMs);
  const { data, error, isFetching } = useQuery({
    queryKey: ['publish', 'forecast', asked],
    enabled: asked !== undefined,
    placeholderData: keepPreviousData,
    queryFn: () => {
      const body = { ...(JSON.parse(asked!) as Notificatie), aanmaakdatum: createdAt() };
      return answerOf(api.POST('/admin/v1/explain', { body, params: { query: { limit: mostShown } } }));
    },
  });
  return (
    <section aria-busy={isFetching}>
      <Title order={2} mb="xs">
        {t('whoGetsIt')}
      </Title>
      <div role="status">
        {notification === undefined ? (
          <Text size="sm" c="dimmed">
            {t('incomplete')}
          </Text>
        ) : error ? (
          <Refused error={error} />
        ) : data ? (
          <Forecast run={data} />
        ) : (
          <Skeleton height={22} />
        )}
      </div>
    </section>
  );
}

function Refused({ error }: { error: unknown }) {
  const t = usePublishTexts();
  const textOf = useRefusalText();
  if (!isProblem(error, 'invalid')) return <ProblemAlert error={error} />;
  return (
    <Alert color="orange" variant="light" title={t('forecastRefused')} p="sm">
      {error.problem.invalidParams.map((param) => (
        <Text size="sm" key={param.name} className="anywhere">
          <b>{param.name}</b>: {textOf(param)}
        </Text>
      ))}
    </Alert>
  );
}

type DryRun = components['schemas']['DryRun'];

const fateColors = {
  sent: 'green',
  held: 'orange',
  'in-line': 'blue',
  expired: 'grape',
  duplicate: 'grape',
  none: 'gray',
} as const;

function Forecast({ run: { matchedCount, subscribedCount, duplicateOf, isTooOld, explanations } }: { run: DryRun }) {
  const t = usePublishTexts();
  const format = useFormat();
  const textOf = useExplanationText();
  const heading =
    subscribedCount === 0
      ? t('forecastNone')
      : matchedCount === 0
        ? t('forecastNobody')
        : t('forecast', { matched: format.number(matchedCount), subscribed: format.number(subscribedCount) });
  return (
    <Stack gap="xs">
      <Text size="sm" fw={600}>
        {heading}
      </Text>
      {duplicateOf !== null && (
        <Text size="sm">
          {t('forecastDuplicate')}{' '}
          <AnchorLink size="sm" ff="monospace" underline="always" to="/notifications/$id" params={{ id: duplicateOf }}>
            {duplicateOf}
          </AnchorLink>
        </Text>
      )}
      {isTooOld && <Text size="sm">{t('forecastTooOld')}</Text>}
      {explanations.map((forecast) => {
        const { subscriptionId, callbackUrl, ownerClientId, fate } = forecast;
        return (
          <div key={subscriptionId}>
            <Group gap="xs" justify="space-between" wrap="nowrap" align="flex-start">
              <AnchorLink size="sm" className="anywhere" to="/subscriptions/$id" params={{ id: subscriptionId }}>
                {callbackUrl}
              </AnchorLink>
              <Badge color={fateColors[fate]} variant="light" style={{ flexShrink: 0 }}>
                {t(fate)}
              </Badge>
            </Group>
            <Text size="xs" c="dimmed" className="anywhere">
              {ownerClientId} · {textOf.ofForecast(forecast)}
            </Text>
          </div>
        );
      })}
      {subscribedCount > explanations.length && (
        <Text size="xs" c="dimmed">
          {t('forecastMore', { count: format.number(subscribedCount - explanations.length) })}
        </Text>
      )}
    </Stack>
  );
}
