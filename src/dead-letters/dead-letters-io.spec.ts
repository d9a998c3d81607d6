import { expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { DeadLetterGroup } from './dead-letter-groups.service.js';
import { deadLettersToShow } from './dead-letters-io.js';

it('of more groups than are shown, all dead letters and all their subscriptions are counted', () => {
  const newest = uuidv7();
  const group = (
    subscriptionId: string,
    errorClass: DeadLetterGroup['errorClass'],
    count: number,
  ): DeadLetterGroup => ({
    subscriptionId,
    state: 'failed',
    errorClass,
    count,
    isAtLeast: false,
    oldest: newest,
    newest,
    lastEndedAt: new Date(),
    lastStatus: 500,
    lastError: 'HTTP 500',
  });
  const large = Array.from({ length: 500 }, () => group(randomUUID(), 'status-5xx', 2));
  const small = Array.from({ length: 70 }, () => group(randomUUID(), 'connection', 1));
  const alsoLarge = group(large[0]!.subscriptionId, 'connection', 1);
  const found = { groups: [...large, ...small, alsoLarge], isComplete: true, searchedTo: undefined, asOf: new Date() };
  const { groups, ...rest } = deadLettersToShow(found, () => undefined);
  expect(groups).toHaveLength(500);
  expect(rest).toMatchObject({ groupsLeftOut: 71, count: 1071, subscriptions: 570 });
});
