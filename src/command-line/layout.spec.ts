import { describe, expect, it } from 'vitest';
import { PassThrough } from 'node:stream';
import { table } from './layout.js';
import { Terminal } from './terminal.js';

function terminalOf({ isTTY }: { isTTY: boolean }): Terminal {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  return new Terminal({ stdin, stdout: Object.assign(stdout, { isTTY }), stderr, onInterrupt: () => () => {} });
}

describe('a table', () => {
  it('has its columns below each other, also of letters that are two wide, and no space at the ends of its lines', () => {
    const rows = [
      ['通知', 1, 'a'],
      ['one\u001btwo', undefined, null],
      ['👩‍💻', '', 'last \n'],
    ];
    const lines = [
      'name          count  other',
      '通知          1      a',
      'one\\u001btwo  –      –',
      '👩‍💻            –      last \\n',
    ];
    expect(table(terminalOf({ isTTY: false }), ['name', 'count', 'other'], rows)).toBe(lines.join('\n'));
  });

  it('has a head in bold where people read it, which takes no more room', () => {
    expect(table(terminalOf({ isTTY: true }), ['id', 'name'], [['abcd', 'one']])).toBe(
      '\u001b[1mid\u001b[22m    \u001b[1mname\u001b[22m\nabcd  one',
    );
  });

  it('is its head where there are no rows', () => {
    expect(table(terminalOf({ isTTY: false }), ['id', 'name'], [])).toBe('id  name');
  });

  it('may have as many rows as a list has', () => {
    const rows = Array.from({ length: 100_000 }, (_, nr) => [
      `channel-${nr}`,
      nr,
      'https://receiver.example.org',
      '',
      'x',
    ]);
    const lines = table(terminalOf({ isTTY: false }), ['a', 'b', 'c', 'd', 'e'], rows).split('\n');
    expect(lines).toHaveLength(rows.length + 1);
    expect(lines.at(-1)).toBe('channel-99999  99999  https://receiver.example.org  –  x');
  });
});
