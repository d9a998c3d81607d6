import { expect, lookAt, retype, signIn, test } from './harness.js';

test('every page of the navigation opens by its link, and at its address', async ({ open, heraut }) => {
  // While nothing was accepted, the overview leads on to the first steps.
  await heraut.publish(await heraut.createChannel());
  const page = await open('overview');
  const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
  const names = await links.allTextContents();
  expect(names.length).toBeGreaterThan(10);
  for (const name of names) {
    await links.filter({ hasText: name }).click();
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await expect(links.filter({ hasText: name })).toHaveAttribute('aria-current', 'page');
  }
  await page.reload();
  await expect(links.last()).toHaveAttribute('aria-current', 'page');
});

test('the console speaks Dutch to those who want it, and remembers', async ({ open }) => {
  const page = await open('overview');
  await page.getByRole('button', { name: 'test-superuser, administrator' }).click();
  await page.getByRole('menuitem', { name: 'Nederlands' }).click();
  await expect(
    page.getByRole('navigation', { name: "Pagina's" }).getByRole('link', { name: 'Onbestelbaar' }),
  ).toBeVisible();
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('lang', 'nl');
  // A comma before a fraction, and a point is understood as well.
  await open('settings');
  const part = page.getByLabel('Willekeurig deel');
  await retype(part, '0,3');
  await expect(part).toHaveValue('0,3');
  await expect(page.getByRole('button', { name: 'Opslaan', exact: true })).toBeEnabled();
  await retype(part, '0.4');
  await expect(part).toHaveValue('0,4');
  await page.getByRole('button', { name: 'Wijzigingen verwerpen' }).click();
  // Also the name of a button that is only a cross.
  await open('channels?new=1');
  await page.getByRole('dialog').getByRole('button', { name: 'Sluit dit venster' }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
});

test('the sentences that the API writes are marked as English on a Dutch page, and those of the console are not', async ({
  open,
  page,
}) => {
  await page.addInitScript(() => localStorage.setItem('heraut-language', 'nl'));
  await open('channels?new=1');
  const form = page.getByRole('dialog');
  await form.getByLabel('Naam').fill('of this test');
  await form.getByLabel('Documentatie').fill('not a link');
  await form.locator('form').evaluate((element: HTMLFormElement) => (element.noValidate = true));
  await form.getByRole('button', { name: 'Kanaal toevoegen' }).click();
  const reasons = form.getByText('Not an absolute http or https URL.');
  await expect(reasons).toHaveCount(2);
  for (const reason of await reasons.all()) await expect(reason).toHaveAttribute('lang', 'en');
  await expect(form.getByText('Dit is niet aangenomen')).not.toHaveAttribute('lang');
});

test('the first load is less than 250 KB of script', async ({ heraut, browser }) => {
  // One that has nothing of the console yet.
  const context = await browser.newContext();
  const page = await context.newPage();
  await signIn(page, heraut.api.url);
  const sizes = new Map<string, number>();
  page.on('response', (response) => {
    if (response.request().resourceType() === 'script')
      sizes.set(response.url(), Number(response.headers()['content-length']));
  });
  await page.goto(`${heraut.api.url}/console/overview?welcome=no`);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.waitForLoadState('networkidle');
  expect(sizes.size).toBeGreaterThan(2);
  // As they are sent: compressed. NaN, where one is not, is no number below it.
  expect([...sizes.values()].reduce((sum, size) => sum + size, 0)).toBeLessThan(250_000);
  await context.close();
});

test('a filter in the address of a list that is not understood is refused, and named', async ({ open }) => {
  for (const [address, name, field] of [
    ['subscriptions?state=pausd', 'state', 'State'],
    ['replays?state=runing', 'state', 'State'],
    ['replays?kind=typo', 'kind', 'Kind'],
    ['alerts?tab=past&rule=typo', 'rule', 'Rule'],
    ['alerts?tab=past&subject=abc', 'rule', undefined],
    ['notifications?state=failed&state=held', 'state', undefined],
  ] as const) {
    const page = await open(address);
    await expect(page.getByRole('alert').first()).toContainText(name);
    await expect(page.getByRole('table')).toHaveCount(0);
    if (field !== undefined)
      await expect(page.getByRole('combobox', { name: field })).toHaveValue(address.split('=').at(-1)!);
    await lookAt(page, `not-understood-${address.split('?')[0]}`);
  }
});

test('fields show their edges and what stands in them for a name, light and dark', async ({ open }) => {
  const page = await open('subscriptions');
  const seen = new Set<string>();
  const look = async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await expect(page.locator('html')).toHaveAttribute('data-mantine-color-scheme', colorScheme);
      for (const { kind, name, contrast, least } of await page.evaluate(contrastsOfFields)) {
        seen.add(kind);
        expect(contrast, `${kind} of ${name}, ${colorScheme}`).toBeGreaterThanOrEqual(least);
      }
    }
  };
  await look();
  await open('applications?new=1');
  await expect(page.getByRole('dialog').getByRole('checkbox').first()).toBeVisible();
  await look();
  await open('settings?tab=retention');
  await expect(page.getByRole('radio').first()).toBeVisible();
  await look();
  expect([...seen].toSorted()).toEqual(['checkbox', 'field', 'placeholder', 'radio', 'switch']);
});

/**
 * In the page: WCAG 2.2, 1.4.3 asks for 4.5 of text and 1.4.11 for 3 of what shows where a field is. The rules of axe
 * leave both of them to the eye.
 */
function contrastsOfFields(): { kind: string; name: string; contrast: number; least: number }[] {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })!;
  const luminance = (color: string) => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue] = [...canvas.getImageData(0, 0, 1, 1).data].map((part) => {
      const share = part / 255;
      return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  };
  const between = (one: string, other: string) => {
    const [darker, lighter] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
    return (lighter! + 0.05) / (darker! + 0.05);
  };
  const behind = (each: Element | null): string => {
    for (let at = each; at; at = at.parentElement) {
      const { backgroundColor } = getComputedStyle(at);
      if (backgroundColor !== 'rgba(0, 0, 0, 0)') return backgroundColor;
    }
    return 'white';
  };
  const kindOf = (each: Element) =>
    each.getAttribute('role') === 'switch' ? 'switch' : (each as HTMLInputElement).type;
  const fields = [...document.querySelectorAll<HTMLInputElement>('input:enabled, textarea:enabled')].filter(
    (each) => each.checkVisibility({ visibilityProperty: true }) && !each.checked,
  );
  return fields.flatMap((each) => {
    const kind = kindOf(each);
    const name = (each.ariaLabel ?? each.labels?.[0]?.textContent ?? each.placeholder) || each.name;
    if (kind === 'switch') {
      const track = each.nextElementSibling!;
      const contrast = between(getComputedStyle(track).backgroundColor, behind(track.parentElement));
      return [{ kind, name, contrast, least: 3 }];
    }
    const { borderTopColor: edge, borderTopWidth, backgroundColor: inside } = getComputedStyle(each);
    const placeholder = each.placeholder && {
      kind: 'placeholder',
      name,
      contrast: between(getComputedStyle(each, '::placeholder').color, behind(each)),
      least: 4.5,
    };
    // A field in a frame has that frame's edge.
    const isFramed = parseFloat(borderTopWidth) === 0;
    const contrast = Math.min(between(edge, inside), between(edge, behind(each.parentElement)));
    return [
      ...(placeholder ? [placeholder] : []),
      ...(isFramed ? [] : [{ kind: ['checkbox', 'radio'].includes(kind) ? kind : 'field', name, contrast, least: 3 }]),
    ];
  });
}
