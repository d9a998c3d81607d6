/** The wish of a listener; an event that lacks a field does not fit a filter of that field. */
export interface EventFilter {
  event?: string | undefined;
  channel?: string | undefined;
  subscription?: string | undefined;
  state?: string | undefined;
}

export function fits(event: Readonly<Record<string, unknown>>, filter: EventFilter): boolean {
  return (
    (filter.event === undefined || event.event === filter.event) &&
    (filter.channel === undefined || event.channel === filter.channel) &&
    (filter.subscription === undefined || event.subscriptionId === filter.subscription) &&
    (filter.state === undefined || event.state === filter.state)
  );
}
