import { expect, type Page } from '@playwright/test';

/** The notes that the page keeps meanwhile. */
interface Tabbed {
  wanted: Element[];
  reached: Set<Element>;
  /** Without an outline while they had the focus; the borders of them and what they are in, then and now. */
  bare: Map<Element, { before: string; now: () => string }>;
  hasLeft: boolean;
}
declare global {
  interface Window {
    tabbed: Tabbed;
  }
}

/**
 * All that can be used in the page is reached with Tab, and shows that it has the focus (WCAG 2.2, 2.1.1 and 2.4.7).
 */
export async function tabThrough(page: Page, name: string): Promise<void> {
  await page.evaluate(begin);
  const progress = () => page.evaluate(() => ({ hasLeft: window.tabbed.hasLeft, count: window.tabbed.reached.size }));
  for (let before = -1, now = await progress(); !now.hasLeft; before = now.count, now = await progress()) {
    // Where Tab goes round, it reaches nothing new; a long list is left all the same.
    expect(now.count, `${name} can be left with Tab`).toBeGreaterThan(before);
    for (let nr = 0; nr < 10; nr++) await page.keyboard.press('Tab');
  }
  const { unreached, unseen } = await page.evaluate(findings);
  expect(unreached, `${name}: out of reach of Tab`).toEqual([]);
  expect(unseen, `${name}: the focus is not seen`).toEqual([]);
}

/** In the page, which must not open or close anything of its own meanwhile. */
function begin(): void {
  const main = document.querySelector('main')!;
  const usable =
    'a[href], button, input:not([type=hidden]), select, textarea, summary, [role=button], [role=link], [role=switch], [role=combobox], [tabindex="0"]';
  const wanted = [...main.querySelectorAll(usable)].filter(
    (each) =>
      each.checkVisibility({ visibilityProperty: true }) &&
      !each.matches(':disabled, [data-disabled=true]') &&
      !each.closest('[inert], [aria-hidden=true]'),
  );
  const tabbed: Tabbed = { wanted, reached: new Set(), bare: new Map(), hasLeft: false };
  window.tabbed = tabbed;
  const isOutlined = (each: Element | null | undefined): boolean => {
    if (!each) return false;
    const { outlineStyle, outlineWidth, opacity } = getComputedStyle(each);
    const { width, height } = each.getBoundingClientRect();
    return outlineStyle !== 'none' && parseFloat(outlineWidth) > 0 && opacity !== '0' && width > 4 && height > 4;
  };
  // The border of a field, or of what has several things to type in, changes its colour.
  const borders = (each: Element | null, up = 4): string =>
    each && up > 0 ? getComputedStyle(each).borderColor + borders(each.parentElement, up - 1) : '';
  const listen = ({ target }: FocusEvent) => {
    if (window.tabbed !== tabbed) return document.removeEventListener('focusin', listen);
    const each = target as HTMLElement;
    if (!main.contains(each)) return void (tabbed.hasLeft = true);
    if (each === main) return;
    tabbed.reached.add(each);
    // For a switch or a radio the picture over it shows the focus; for a field in a frame, the frame.
    const others = [each.nextElementSibling, each.parentElement, (each as HTMLInputElement).labels?.[0]];
    if ([each, ...others].some(isOutlined)) return;
    const now = () => borders(each);
    tabbed.bare.set(each, { before: now(), now });
  };
  document.addEventListener('focusin', listen);
  main.focus();
}

/** In the page, once its end is reached. */
function findings(): { unreached: string[]; unseen: string[] } {
  const { wanted, reached, bare } = window.tabbed;
  const ofGroup = (each: Element): Element[] => {
    // Within tabs and radios, arrows go on from the one that Tab reaches.
    if (each.matches('[role=tab]')) return [...each.closest('[role=tablist]')!.querySelectorAll('[role=tab]')];
    if (each instanceof HTMLInputElement && each.type === 'radio')
      return [...document.querySelectorAll(`input[type=radio][name="${each.name}"]`)];
    return [each];
  };
  // An element that was drawn anew meanwhile is another one.
  const unreached = wanted.filter((each) => each.isConnected && !ofGroup(each).some((other) => reached.has(other)));
  const unseen = [...bare].filter(([each, { before, now }]) => each.isConnected && before === now());
  const nameOf = (each: Element) => each.outerHTML.slice(0, 200);
  return { unreached: unreached.map(nameOf), unseen: unseen.map(([each]) => nameOf(each)) };
}
