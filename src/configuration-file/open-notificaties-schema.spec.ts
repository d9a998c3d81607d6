import { expect, it } from 'vitest';
import { namespaces } from './open-notificaties-schema.js';

it('a filter with the name __proto__ is refused: without it, the abonnement would get more than it did', () => {
  const { item } = namespaces.notifications_abonnementen_config;
  const filters = JSON.parse('{ "kind": "a", "__proto__": "b" }') as object;
  const parsed = item.safeParse({ uuid: 'x', callback_url: 'x', kanalen: [{ naam: 'cases', filters }] });
  expect(parsed.error?.issues).toMatchObject([{ path: ['kanalen', 0, 'filters', '__proto__'] }]);
});
