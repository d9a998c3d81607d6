/** The page that `g` and then this key leads to, in the order of the help sheet. */
export const goKeys = {
  o: 'overview',
  n: 'notifications',
  t: 'tail',
  d: 'dead-letters',
  r: 'replays',
  e: 'endpoints',
  a: 'alerts',
  s: 'subscriptions',
  c: 'channels',
  k: 'applications',
  p: 'publish',
  u: 'audit',
  i: 'settings',
} as const;

export type GoPage = (typeof goKeys)[keyof typeof goKeys];

export type KeyCommand =
  | { kind: 'go'; page: GoPage }
  | { kind: 'palette' }
  | { kind: 'help' }
  /** To the next or the former row of the list. */
  | { kind: 'step' };

/** The fields of a KeyboardEvent that count. */
export interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

export interface KeyContext {
  /** The focus is where letters are typed. */
  isTyping: boolean;
  /** A dialog is open: it is to be answered first. */
  isDialogOpen: boolean;
  /** Keys that are a single letter or sign are switched on (WCAG 2.2, 2.1.4). */
  hasSingleKeys: boolean;
  /** `g` was pressed just before. */
  isAfterG: boolean;
}

/** The meaning of a key now. `isG`: the next one says where to go. */
export function readKey(
  { key, ctrlKey, metaKey, altKey }: Pressed,
  { isTyping, isDialogOpen, hasSingleKeys, isAfterG }: KeyContext,
): { command?: KeyCommand; isG?: true } {
  if (isDialogOpen) return {};
  if ((ctrlKey || metaKey) && !altKey && key.toLowerCase() === 'k') return { command: { kind: 'palette' } };
  if (isTyping || !hasSingleKeys || ctrlKey || metaKey || altKey) return {};
  if (isAfterG && Object.hasOwn(goKeys, key))
    return { command: { kind: 'go', page: goKeys[key as keyof typeof goKeys] } };
  switch (key) {
    case 'g':
      return { isG: true };
    case '/':
      return { command: { kind: 'palette' } };
    case '?':
      return { command: { kind: 'help' } };
    case 'j':
    case 'k':
      return { command: { kind: 'step' } };
    default:
      return {};
  }
}

const textFields =
  'input:not([type="checkbox"],[type="radio"],[type="button"],[type="submit"]),textarea,select,[contenteditable]:not([contenteditable="false"]),[role="textbox"],[role="combobox"],[role="searchbox"]';

/** Whether a key that is pressed there is text. */
export const isTextField = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest(textFields) !== null;
