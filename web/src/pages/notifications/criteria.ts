import { momentOf } from '../../parts/moment.ts';
import { allOf, type UrlState } from '../../parts/url-state.ts';
import { isUuid } from '../../parts/uuid.ts';
import { unfinishedStates } from '../../selection/selection.ts';

/** The criteria of a search: the parameters of the API by their own names, so that an address can be read. */
export const criteria = [
  'state',
  'channel',
  'subscription',
  'mainObject',
  'characteristic',
  'action',
  'errorClass',
  'lastStatus',
  'minAttempts',
  'acceptedFrom',
  'acceptedTo',
  'publisher',
  'owner',
  'resourceUrl',
  'key',
  'notification',
  'replay',
  'unmatched',
] as const;
export type Criterion = (typeof criteria)[number];

/** One that may be given several times has a list in the address. */
const isRepeated = (criterion: Criterion) => criterion === 'characteristic';

export interface Filter {
  criterion: Criterion;
  value: string;
}

export const filtersOf = (state: UrlState): Filter[] =>
  criteria.flatMap((criterion) => allOf(state[criterion]).map((value) => ({ criterion, value })));

/** The change of the address that adds a filter; another of its kind is replaced, where there can be one only. */
export const adding = (state: UrlState, { criterion, value }: Filter): UrlState => ({
  [criterion]: isRepeated(criterion) ? [...new Set([...allOf(state[criterion]), value])] : value,
});

export const removing = (state: UrlState, { criterion, value }: Filter): UrlState => ({
  [criterion]: allOf(state[criterion]).filter((each) => each !== value),
});

/**
 * As the API takes it; what it does not take is refused by it, and shown: several values of one that there can be one
 * of, too.
 */
export function queryOf(state: UrlState): Record<string, string | string[]> {
  return Object.fromEntries(
    criteria.flatMap((criterion): [string, string | string[]][] => {
      const values = allOf(state[criterion]);
      if (values.length === 0) return [];
      return [[criterion, isRepeated(criterion) || values.length > 1 ? values : values[0]!]];
    }),
  );
}

/** That a selection of deliveries can be narrowed by as well. */
const ofSelections = new Set<string>([
  'notification',
  'channel',
  'subscription',
  'errorClass',
  'acceptedFrom',
  'acceptedTo',
] satisfies Criterion[]);

/**
 * The search of the page on which the unfinished deliveries of these notifications are cancelled. Undefined where a
 * filter cannot be said there: more would be meant than is shown.
 */
export function unfinishedOf(state: UrlState): UrlState | undefined {
  const query = queryOf(state);
  const isSaid = ([name, value]: [string, string | string[]]) =>
    typeof value === 'string' &&
    (name === 'state' ? unfinishedStates.some((each) => each === value) : ofSelections.has(name));
  const filters = Object.entries(query);
  return filters.length > 0 && filters.every(isSaid) ? { what: 'unfinished', ...query, count: 'yes' } : undefined;
}

/** Of an address: the head of a request may have 16 KiB. */
const longestInAddress = 8000;

/** As the API takes one; undefined where an address has no room for it, or where it has no name. */
export function characteristicValue(name: string, value: string): string | undefined {
  const text = `${escapedName(name)}:${value}`;
  return name === '' || encodeURIComponent(text).length > longestInAddress ? undefined : text;
}

/** The first colon that has no backslash before it ends the name. */
export const escapedName = (name: string): string => name.replace(/[\\:]/g, String.raw`\$&`);

const number = /^\d{1,9}$/;

export type Wrong = 'badTime' | 'badNumber' | 'badCharacteristic' | 'badId';

/** The input as the address has it, or the fault in it. */
export function readValue(criterion: Criterion, typed: string): { value: string } | { wrong: Wrong } {
  const value = typed.trim();
  switch (criterion) {
    case 'acceptedFrom':
    case 'acceptedTo': {
      const moment = momentOf(value);
      return moment === undefined ? { wrong: 'badTime' } : { value: moment };
    }
    case 'minAttempts':
    case 'lastStatus':
      return number.test(value) ? { value } : { wrong: 'badNumber' };
    case 'characteristic':
      return /^(?:\\[\s\S]|[^:\\])+:/.test(value) ? { value } : { wrong: 'badCharacteristic' };
    case 'notification':
    case 'replay':
    case 'subscription':
      return isUuid(value) ? { value: value.toLowerCase() } : { wrong: 'badId' };
    default:
      return { value };
  }
}

/** The criteria that a text may belong to that was typed or pasted without one; the likeliest first. */
export function guessesFor(typed: string): Criterion[] {
  const text = typed.trim();
  if (text === '') return [];
  if (isUuid(text)) return ['notification', 'subscription', 'key'];
  if (/^https?:\/\//.test(text)) return ['mainObject', 'resourceUrl'];
  if (/^(?:\\\S|[^:\\\s])+:./.test(text)) return ['characteristic'];
  return ['channel', 'key', 'publisher', 'action'];
}

/** "channel:cases" names the criterion itself. */
export function readTyped(typed: string): Filter | undefined {
  const parts = /^(\w+):(.+)$/.exec(typed.trim());
  const criterion = criteria.find((each) => each === parts?.[1]);
  if (!parts || !criterion) return undefined;
  const read = readValue(criterion, parts[2]!);
  return 'value' in read ? { criterion, value: read.value } : undefined;
}
