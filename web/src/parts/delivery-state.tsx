import { Badge } from '@mantine/core';
import {
  TbAlertOctagon,
  TbBan,
  TbCheck,
  TbClock,
  TbHelp,
  TbHourglass,
  TbPlayerPause,
  TbSend,
  TbStack2,
} from 'react-icons/tb';
import type { components } from '../../generated/admin-api.d.ts';
import { useFormat } from '../i18n/format.ts';
import { defineTexts } from '../i18n/i18n.ts';

/** As the API has them: one that is new there does not compile here without its texts and its sign. */
export type DeliveryState = components['schemas']['Delivery']['state'];

export const useDeliveryStateTexts = defineTexts<DeliveryState>(
  'delivery-state',
  {
    waiting: 'waiting',
    held: 'held',
    queued: 'queued',
    sending: 'sending',
    delivered: 'delivered',
    failed: 'failed',
    expired: 'expired',
    cancelled: 'cancelled',
    unknown: 'unknown',
  },
  {
    waiting: 'wacht',
    held: 'vastgehouden',
    queued: 'in de wachtrij',
    sending: 'wordt verstuurd',
    delivered: 'afgeleverd',
    failed: 'mislukt',
    expired: 'verlopen',
    cancelled: 'geannuleerd',
    unknown: 'onbekend',
  },
);

const looks = {
  waiting: ['blue', TbClock],
  held: ['orange', TbPlayerPause],
  queued: ['gray', TbStack2],
  sending: ['blue', TbSend],
  delivered: ['green', TbCheck],
  failed: ['red', TbAlertOctagon],
  expired: ['grape', TbHourglass],
  cancelled: ['gray', TbBan],
  unknown: ['grape', TbHelp],
} as const satisfies Record<DeliveryState, readonly [color: string, sign: typeof TbClock]>;

export const deliveryStates = Object.keys(looks) as DeliveryState[];
export const isEnded = (state: DeliveryState): boolean =>
  ['delivered', 'failed', 'expired', 'cancelled', 'unknown'].includes(state);

interface Props {
  state: DeliveryState;
  /** So many are in it. */
  count?: number | undefined;
}

/** A state is a word and a sign, not only a colour. */
export function DeliveryStateBadge({ state, count }: Props) {
  const t = useDeliveryStateTexts();
  const format = useFormat();
  const [color, Icon] = looks[state];
  return (
    <Badge color={color} variant="light" leftSection={<Icon size={12} aria-hidden />}>
      {count === undefined ? t(state) : `${format.number(count)} ${t(state)}`}
    </Badge>
  );
}
