import { describe, expect, it } from 'vitest';
import { describeNews, titleOf } from './describe-news.js';

describe('a description of an alert', () => {
  const about = { subscriptionId: 'the-id', owner: 'zaken', receiver: 'https://receiver.example' };

  it('has what a disabled subscription missed sent again from when it was disabled on, and not from before it was made', () => {
    const news = { rule: 'subscription-disabled', details: about, since: '2026-11-22T02:00:00.000Z' } as const;
    const { toDo } = describeNews(news, 'operator');
    expect(toDo).toContain('heraut replay start --everything-for the-id --since 2026-11-22T02:00:00.000Z;');
    expect(toDo).toContain('heraut replay start --subscription the-id.');
  });

  it('has the commands for dead letters on lines of their own, with all that they ask for', () => {
    const details = { ...about, count: 1, newestNotificationId: 'n', reason: null };
    const { toDo } = describeNews({ rule: 'dead-letters', details, since: new Date(0) }, 'operator');
    expect(toDo.split('\n').filter((line) => line.startsWith('heraut '))).toEqual([
      'heraut deliveries list --state failed --subscription the-id',
      'heraut replay start --subscription the-id',
      'heraut replay start --state unknown --subscription the-id',
      'heraut deliveries close-all --subscription the-id --note "not needed any more"',
    ]);
  });

  it('promises of a receiver that does not work only that deliveries are held for as long as they would be tried', () => {
    const details = { receiver: 'https://receiver.example', reason: null, failures: 5 };
    const news = { rule: 'endpoint-open', details, since: new Date(0) } as const;
    expect(describeNews(news, 'owner').toDo).toMatch(
      /a day unless it was agreed otherwise; after that the operator must/,
    );
    expect(describeNews(news, 'owner').toDo).toMatch(/within a minute .*, or after the time that it asked for/);
    expect(describeNews(news, 'operator').toDo).toContain('they become dead letters, to be sent again');
  });

  it('is there also where a newer version has the rule', () => {
    const news = { rule: 'of-tomorrow' as never, details: { subscriptionId: 'the-id' } as never, since: new Date(0) };
    expect(describeNews(news, 'operator').what).toContain('of-tomorrow');
    expect(describeNews(news, 'owner').what).toContain('of-tomorrow');
    expect([titleOf('of-tomorrow'), titleOf('toString'), titleOf('dead-letters')]).toEqual([
      'of-tomorrow',
      'toString',
      'Dead letters',
    ]);
  });
});
