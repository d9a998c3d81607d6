import { useNavigate, useSearch } from '@tanstack/react-router';

/** The parameters behind the `?` of the address: a name that comes several times has a list. */
export type UrlState = Record<string, string | string[] | undefined>;

/**
 * The state of a page is its address: it can be sent to a colleague, and the back button works. `set` changes the names
 * given; undefined and '' remove one. `isStep` makes an entry of the browser's history; without, the present one is
 * replaced.
 */
export function useUrlState(): [state: UrlState, set: (changes: UrlState, isStep?: boolean) => void] {
  const state: UrlState = useSearch({ strict: false });
  const navigate = useNavigate();
  const set = (changes: UrlState, isStep = false) =>
    void navigate({
      to: '.',
      search: (before: UrlState) =>
        Object.fromEntries(
          Object.entries({ ...before, ...changes }).filter(
            ([, value]) => value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0),
          ),
        ),
      replace: !isStep,
      resetScroll: false,
    });
  return [state, set];
}

/** The only value of that name, or the first one. */
export const oneOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

export const allOf = (value: string | string[] | undefined): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

/**
 * Bytes behind the `?` that an address of the console has at most, where they can become many. Heraut takes 16 KiB for
 * the address and the headers, in which whatever else is at this host may have large cookies; a proxy often takes no
 * more than 8 KiB for the address.
 */
export const longestSearch = 7_500;

/** For the router: plain text, not JSON, so that an address can be read and typed. */
export function parseSearch(text: string): UrlState {
  const state: Record<string, string | string[]> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const before = state[name];
    state[name] = before === undefined ? value : [...allOf(before), value];
  }
  return state;
}

export function stringifySearch(state: Record<string, unknown>): string {
  const text = new URLSearchParams(
    Object.entries(state).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value])
        .filter((each): each is string | number | boolean => ['string', 'number', 'boolean'].includes(typeof each))
        .map((each) => [name, String(each)]),
    ),
  ).toString();
  return text === '' ? '' : `?${text}`;
}
