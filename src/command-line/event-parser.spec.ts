import { describe, expect, it } from 'vitest';
import { EventParser } from './event-parser.js';

const stream =
  'retry: 1500\n\nid: 7\nevent: one\ndata: {"a":\ndata: 1}\n\n: alive\n\nevent: two\r\ndata:x\r\n\r\ndata: rest';
const events = [
  { id: '7', event: 'one', data: '{"a":\n1}' },
  { id: undefined, event: 'two', data: 'x' },
];

describe('a stream of server-sent events', () => {
  it('is read as it was written, and what is not complete waits', () => {
    const parser = new EventParser();
    expect(parser.push(stream)).toEqual(events);
    expect(parser.retryMs).toBe(1500);
    expect(parser.push('\n\n')).toEqual([{ id: undefined, event: 'message', data: 'rest' }]);
  });

  it('tells where to go on, also by a position that comes without an event', () => {
    const parser = new EventParser();
    parser.push('id: 7\ndata: x\n\ndata: y\n\n');
    expect(parser.lastId).toBe('7');
    parser.push(': alive\nid: 9\n');
    expect(parser.lastId).toBe('7');
    expect([parser.push('\n'), parser.lastId]).toEqual([[], '9']);
  });

  it('is the same wherever it is cut', () => {
    for (let at = 0; at <= stream.length; at += 1) {
      const parser = new EventParser();
      expect([...parser.push(stream.slice(0, at)), ...parser.push(stream.slice(at))]).toEqual(events);
    }
  });
});
