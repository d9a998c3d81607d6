import type { InvalidParam } from '../../api/problem.ts';
import { momentOf } from '../../parts/moment.ts';

export interface Pair {
  name: string;
  value: string;
}

/** The input of the form, as it is typed. */
export interface Draft {
  channel: string;
  action: string;
  mainObject: string;
  resource: string;
  resourceUrl: string;
  /** `datetime-local`; empty: the moment it is published. */
  createdAt: string;
  /** By the names of the channel's filters. Empty: left out. */
  filters: Record<string, string>;
  /** Kenmerken beyond those. */
  more: Pair[];
  source: string;
  /** `datetime-local`; empty: at once. */
  deliverAfter: string;
  /** Empty: one that the page makes. */
  key: string;
}

export const emptyDraft: Draft = {
  channel: '',
  action: 'create',
  mainObject: '',
  resource: '',
  resourceUrl: '',
  createdAt: '',
  filters: {},
  more: [],
  source: '',
  deliverAfter: '',
  key: '',
};

/** A notification as the Notificaties API writes it. */
export interface Notificatie {
  kanaal: string;
  hoofdObject: string;
  resource: string;
  resourceUrl: string;
  actie: string;
  aanmaakdatum: string;
  kenmerken: Record<string, string>;
  source?: string;
}

/**
 * @param filterNames of its channel
 * @param nowMs the present, by the clock of the server
 */
export function notificatieOf(draft: Draft, filterNames: readonly string[], nowMs: number): Notificatie {
  const { channel, action, mainObject, resource, resourceUrl, createdAt, filters, more, source } = draft;
  const known = filterNames.flatMap((name): [string, string][] => {
    const value = filters[name] ?? '';
    return value === '' ? [] : [[name, value]];
  });
  const added = more.flatMap(({ name, value }): [string, string][] =>
    name.trim() === '' ? [] : [[name.trim(), value]],
  );
  return {
    kanaal: channel,
    hoofdObject: mainObject.trim(),
    resource: resource.trim(),
    resourceUrl: resourceUrl.trim(),
    actie: action.trim(),
    aanmaakdatum: createdAt === '' ? new Date(nowMs).toISOString() : momentOrText(createdAt),
    // Not by assignment: a name such as __proto__ is an ordinary one.
    kenmerken: Object.fromEntries([...known, ...added]),
    ...(source.trim() !== '' && { source: source.trim() }),
  };
}

/** The input as a moment; a text that is none goes to the API as it is, which says so. */
export const momentOrText = (local: string): string => momentOf(local) ?? local;

/** Whether all is there that every notification must have: only then the API is asked about it. */
export const isComplete = ({ channel, action, mainObject, resource, resourceUrl }: Draft): boolean =>
  [channel, action, mainObject, resource, resourceUrl].every((text) => text.trim() !== '');

/** The draft that would publish a notification once more, with another moment. */
export function draftLike(body: Partial<Notificatie>, filterNames: readonly string[]): Draft {
  const kenmerken = Object.entries(body.kenmerken ?? {});
  const filterOf = new Map(filterNames.map((name) => [spelledAlike(name), name]));
  const known = kenmerken.flatMap(([name, value]): [string, string][] => {
    const filter = filterOf.get(spelledAlike(name));
    return filter === undefined ? [] : [[filter, value]];
  });
  return {
    ...emptyDraft,
    channel: body.kanaal ?? '',
    action: body.actie ?? '',
    mainObject: body.hoofdObject ?? '',
    resource: body.resource ?? '',
    resourceUrl: body.resourceUrl ?? '',
    source: body.source ?? '',
    filters: Object.fromEntries(known),
    more: kenmerken.flatMap(([name, value]) => (filterOf.has(spelledAlike(name)) ? [] : [{ name, value }])),
  };
}

/** `object_type` and `objectType` are one name to the API. */
const spelledAlike = (name: string): string => name.replaceAll('_', '').toLowerCase();

/** A field of the form: `filters.NAME` is one of a filter, `more.INDEX` the value of an added one. */
export type FieldName = Exclude<keyof Draft, 'filters'> | `filters.${string}` | `more.${number}`;

const fieldOf: Record<string, FieldName> = {
  kanaal: 'channel',
  hoofdObject: 'mainObject',
  resource: 'resource',
  resourceUrl: 'resourceUrl',
  actie: 'action',
  aanmaakdatum: 'createdAt',
  kenmerken: 'more',
  source: 'source',
  'Deliver-After': 'deliverAfter',
};

/** Where in the form the API's refusals belong; those that no field stands for are left over. */
export function placeRefusals(
  invalidParams: readonly InvalidParam[],
  draft: Draft,
): { at: Partial<Record<FieldName, InvalidParam>>; elsewhere: InvalidParam[] } {
  const at: Partial<Record<FieldName, InvalidParam>> = {};
  const elsewhere: InvalidParam[] = [];
  for (const param of invalidParams) {
    const field = fieldOf[param.name] ?? characteristicField(param.name, draft);
    if (field === undefined) elsewhere.push(param);
    else at[field] ??= param;
  }
  return { at, elsewhere };
}

function characteristicField(paramName: string, { filters, more }: Draft): FieldName | undefined {
  if (!paramName.startsWith('kenmerken.')) return undefined;
  const name = paramName.slice('kenmerken.'.length);
  const index = more.findIndex((pair) => pair.name.trim() === name);
  if (index >= 0) return `more.${index}`;
  return Object.hasOwn(filters, name) ? `filters.${name}` : 'more';
}
