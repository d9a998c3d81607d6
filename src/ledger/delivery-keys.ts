import type { Delivery, DeliveryKey } from './delivery.js';

/** A delivery's key as a statement answers it. */
export interface KeyRow {
  notification_id: string;
  subscription_id: string;
}

/** The arrays a statement takes deliveries as. */
export function keysOf(deliveries: Delivery[]): [string[], string[], number[]] {
  return [
    deliveries.map((delivery) => delivery.notificationId),
    deliveries.map((delivery) => delivery.subscriptionId),
    deliveries.map((delivery) => delivery.generation),
  ];
}

/** To be asked whether it has a delivery, in the generation it was handed out with. */
export function generationsIn(rows: (KeyRow & { generation: number })[]): Set<string> {
  return new Set(rows.map((row) => `${row.notification_id}/${row.subscription_id}/${row.generation}`));
}

export const generationOf = ({
  notificationId,
  subscriptionId,
  generation,
}: DeliveryKey & { generation: number }): string => `${notificationId}/${subscriptionId}/${generation}`;
