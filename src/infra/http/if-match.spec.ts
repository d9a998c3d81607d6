import { describe, expect, it } from 'vitest';
import { entityTagOf, requireMatch } from './if-match.js';

const [seen, now] = [{ name: 'one' }, { name: 'other' }];
const tag = entityTagOf(seen);
const inTag = tag.slice(1, -1);

describe('If-Match', () => {
  it.each([
    undefined,
    '*',
    tag,
    ` "x" , ${tag}`,
    // As nginx and Apache give it to a client when they compress the answer.
    `W/${tag}`,
    `"${inTag}-gzip"`,
  ])('is met while the resource is as it was read: %s', (ifMatch) => {
    expect(() => requireMatch(ifMatch, { ...seen })).not.toThrow();
  });

  it.each([tag, `W/${tag}`, `"${inTag}-gzip"`, '', '"*"'])('is not met when it has changed: %s', (ifMatch) => {
    expect(() => requireMatch(ifMatch, now)).toThrow(expect.objectContaining({ code: 'changed-meanwhile' }));
  });
});
