import { useEffect } from 'react';

/** An element that had the focus, and where it stood, from the inside out: what holds it may go with it. */
interface Held {
  element: HTMLElement;
  path: readonly Place[];
}

interface Place {
  parent: Element;
  at: number;
}

/** As many are remembered: a row of dialogs may have gone, each with what opened it. */
const mostRemembered = 20;
/** The page itself, its dialogs and the library move the focus within this time; then nobody does. */
const settledMs = 50;

const focusable = 'a[href], button, input, select, textarea, [tabindex]';

/** A part that takes the focus itself where what had it in there goes: its rows are drawn as they come into view. */
export const takesFocus = { 'data-takes-focus': true };

/**
 * A control that goes, or is disabled, while it has the focus leaves the focus nowhere: then a screen reader says
 * nothing, and Tab begins at the top of the page. Here the focus goes on where it was: at the same control once it can
 * be used again, else at what stands in its place, else at where the focus was before, as after a dialog.
 */
export function useKeptFocus(): void {
  useEffect(() => keepFocus(), []);
}

function keepFocus(): () => void {
  let held: Held[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;

  const settle = () => {
    const [last] = held;
    if (!last || !isFocusNowhere()) return;
    const next = nextOf(held);
    // It goes on when that is over, or when the dialog that closes is gone.
    if (next === undefined || isWorking(next)) return;
    next.focus({ preventScroll: next.matches('main') || next === last.element });
  };
  const look = () => {
    if (held[0] === undefined || !isFocusNowhere()) return;
    clearTimeout(timer);
    timer = setTimeout(settle, settledMs);
  };
  const remember = ({ target }: FocusEvent) => {
    if (!(target instanceof HTMLElement)) return;
    held = [{ element: target, path: pathOf(target) }, ...held.filter(({ element }) => element !== target)];
    held.splice(mostRemembered);
  };
  /** Somebody left it for no other, with a click beside it for example. */
  const forget = ({ target, relatedTarget }: FocusEvent) => {
    if (relatedTarget !== null) return;
    setTimeout(() => {
      if (held[0]?.element === target && isThere(held[0].element) && isFocusNowhere() && document.hasFocus()) held = [];
    });
  };

  const changes = new MutationObserver(look);
  changes.observe(document.body, { subtree: true, childList: true, attributeFilter: ['disabled'] });
  document.addEventListener('focusin', remember);
  document.addEventListener('focusout', forget);
  return () => {
    clearTimeout(timer);
    changes.disconnect();
    document.removeEventListener('focusin', remember);
    document.removeEventListener('focusout', forget);
  };
}

const isThere = (element: Element): boolean => element.isConnected && !element.matches(':disabled');

const isWorking = (element: Element): boolean => element.matches('[data-loading]:disabled');

/** Also at a control that cannot have it: the browser notices only when it draws the page again. */
const isFocusNowhere = (): boolean => {
  const now = document.activeElement;
  return now === null || now === document.body || !isThere(now);
};

function pathOf(element: Element): Place[] {
  const path: Place[] = [];
  for (let [child, parent] = [element, element.parentElement]; parent; [child, parent] = [parent, parent.parentElement])
    path.push({ parent, at: [...parent.children].indexOf(child) });
  return path;
}

/** Beyond it is another part of the page: a dialog, or the navigation. */
const isEnd = (element: Element): boolean => element.matches('body, main, [aria-modal="true"]');

function nextOf(held: readonly Held[]): HTMLElement | undefined {
  const dialog = [...document.querySelectorAll<HTMLElement>('[aria-modal="true"]')].at(-1);
  const within = dialog ?? document.body;
  for (const { element, path } of held) {
    const next = isUsable(element) || isWorking(element) ? element : nextTo(path);
    if (next && within.contains(next)) return next;
  }
  // A dialog without anything to use is about to close.
  return dialog ? firstIn(dialog) : (document.querySelector('main') ?? undefined);
}

/** The nearest control after that place, or else before it. */
function nextTo(path: readonly Place[]): HTMLElement | undefined {
  for (const { parent, at } of path) {
    if (isEnd(parent)) return undefined;
    if (!parent.isConnected) continue;
    if (parent instanceof HTMLElement && 'takesFocus' in parent.dataset) return parent;
    const children = [...parent.children];
    for (const each of [...children.slice(at), ...children.slice(0, at).toReversed()]) {
      const found = firstIn(each);
      if (found) return found;
    }
  }
  return undefined;
}

const firstIn = (element: Element): HTMLElement | undefined =>
  [element, ...element.querySelectorAll(focusable)].find(
    (each): each is HTMLElement => each instanceof HTMLElement && each.tabIndex >= 0 && isUsable(each),
  );

const isUsable = (element: Element): boolean =>
  isThere(element) && element.checkVisibility({ visibilityProperty: true });
