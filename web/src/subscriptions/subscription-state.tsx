import { Badge, Group } from '@mantine/core';
import { TbCheck, TbKeyOff, TbPlayerPause, TbPlugConnectedX, TbPlugX, TbQuestionMark } from 'react-icons/tb';
import { defineTexts } from '../i18n/i18n.ts';
import type { Situation, Subscription } from './data.ts';

export const useSubscriptionStateTexts = defineTexts(
  'subscription-state',
  {
    enabled: 'enabled',
    paused: 'paused',
    disabled: 'disabled',
    unreadable: 'unreadable',
    parked: 'parked',
    notKnown: 'not known',
  },
  {
    enabled: 'actief',
    paused: 'gepauzeerd',
    disabled: 'uitgeschakeld',
    unreadable: 'onleesbaar',
    parked: 'geparkeerd',
    notKnown: 'niet bekend',
  },
);

const looks = {
  enabled: ['green', TbCheck],
  paused: ['orange', TbPlayerPause],
  disabled: ['red', TbPlugX],
  unreadable: ['red', TbKeyOff],
  parked: ['orange', TbPlugConnectedX],
  notKnown: ['gray', TbQuestionMark],
} as const;

type State = keyof typeof looks;

/**
 * All that keeps deliveries from going out, or that nothing does; nobody is told so before it is known of its endpoint.
 */
function statesOf(
  { pausedAt, disabledAt, credentials }: Subscription,
  situation: Situation | null | undefined,
): State[] {
  const states: State[] = [];
  if (disabledAt) states.push('disabled');
  if (pausedAt) states.push('paused');
  if (credentials.unreadable !== null) states.push('unreadable');
  if (situation?.endpoint) states.push('parked');
  return states.length === 0 ? [situation ? 'enabled' : 'notKnown'] : states;
}

interface Props {
  subscription: Subscription;
  situation: Situation | null | undefined;
  /** Of a row of a list: small, three of them go below each other. */
  size?: 'sm' | 'md';
}

export function SubscriptionState({ subscription, situation, size = 'md' }: Props) {
  const t = useSubscriptionStateTexts();
  return (
    <Group gap={2}>
      {statesOf(subscription, situation).map((state) => {
        const [color, Icon] = looks[state];
        return (
          <Badge key={state} size={size} color={color} variant="light" leftSection={<Icon size={12} aria-hidden />}>
            {t(state)}
          </Badge>
        );
      })}
    </Group>
  );
}
