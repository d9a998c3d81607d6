import { QueryClient } from '@tanstack/react-query';
import { expect, it } from 'vitest';
import { foundListsKey, readListsAnew } from './found-lists.ts';

it('lists that were left are read anew after something was done, and long ones from their beginning', () => {
  const client = new QueryClient();
  const keyOf = (name: string) => [...foundListsKey, { state: name }];
  const listOf = (pages: number) => ({ pages: Array.from({ length: pages }, () => ({})), pageParams: [] });
  client.setQueryData(keyOf('failed'), listOf(2));
  client.setQueryData(keyOf('delivered'), listOf(1000));
  client.setQueryData(['channels'], []);
  readListsAnew(client);
  expect(client.getQueryState(keyOf('failed'))).toMatchObject({ isInvalidated: true, data: listOf(2) });
  expect(client.getQueryState(keyOf('delivered'))).toBeUndefined();
  expect(client.getQueryState(['channels'])).toMatchObject({ isInvalidated: false });
});
