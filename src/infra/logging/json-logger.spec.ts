import { beforeEach, describe, expect, it } from 'vitest';
import { QueryFailedError } from 'typeorm';
import { JsonLogger } from './json-logger.js';

describe('the log', () => {
  const lines: string[] = [];
  const logger = JsonLogger.open({ LOG_LEVEL: 'info' }, { write: (line) => void lines.push(line) });

  beforeEach(() => {
    lines.length = 0;
  });

  it('is one JSON object a line, with time, level and event', () => {
    logger.warn({ event: 'queue.refused', deliveries: 3 }, 'Enqueuer');
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toEqual({
      level: 'warn',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      event: 'queue.refused',
      deliveries: 3,
      source: 'Enqueuer',
    });
  });

  it('has the process and the class that logs in each line, whatever the event holds', () => {
    const ofProcess = logger.ofProcess(42);
    ofProcess.log({ event: 'plain', text: 'a "quoted"\n line', count: NaN, gone: undefined, none: null }, 'Source "s"');
    ofProcess.log({ event: 'nested', at: { text: 'x' } }, 'Source "s"');
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { level: 'info', pid: 42, source: 'Source "s"', text: 'a "quoted"\n line', count: null, none: null },
      { level: 'info', pid: 42, source: 'Source "s"', at: { text: 'x' } },
    ]);
    expect(lines.map((line) => Object.keys(JSON.parse(line) as object).slice(0, 5))).toEqual([
      ['level', 'time', 'pid', 'source', 'event'],
      ['level', 'time', 'pid', 'source', 'event'],
    ]);
    for (const line of lines) expect(line).toMatch(/^[^\n]*\n$/);
    ofProcess.log({ event: undefined });
    expect(JSON.parse(lines[2]!)).toMatchObject({ level: 'info', pid: 42 });
  });

  it('is silent below its level, and writes a mere text as a message', () => {
    logger.debug({ event: 'x' });
    logger.log('from the framework');
    logger.warn('from the framework', 'Router');
    expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
      { level: 'warn', time: expect.any(String), source: 'Router', message: 'from the framework' },
    ]);
  });

  it('holds the message and the stack of an error that is logged as it is, whatever fields it has', () => {
    logger.error(Object.assign(new Error('outer'), { code: 'EPIPE' }), 'ExceptionsHandler');
    const line = JSON.parse(lines[0]!) as { err: { message: string; stack: string; code: string } };
    expect(line.err).toMatchObject({
      message: 'outer',
      code: 'EPIPE',
      stack: expect.stringContaining('json-logger.spec'),
    });
  });

  it('holds the stack and the causes of an error', () => {
    logger.error({ event: 'request.failed', error: new Error('outer', { cause: new Error('inner') }) });
    const { error } = JSON.parse(lines[0]!) as { error: { stack: string; cause: { message: string } } };
    expect(error.stack).toContain('json-logger.spec');
    expect(error.cause.message).toBe('inner');
  });

  it.each(['secret', 'auth', 'authorization', 'password', 'token'])('never holds what is called %s', (name) => {
    logger.log({ event: 'x', [name]: 'hush', application: { [name]: 'hush' } });
    expect(lines[0]).not.toContain('hush');
  });

  it('never holds the values of a statement that failed', () => {
    const refusal = Object.assign(new Error('null value'), {
      code: '23502',
      detail: 'Failing row contains (1, hush).',
    });
    const error = new QueryFailedError('INSERT INTO application …', [1, 'hush'], refusal);
    logger.error({ event: 'request.failed', error });
    logger.error({ event: 'request.failed', error: new Error('wrapped', { cause: error }) });
    logger.error({ event: 'request.failed', error: refusal });
    const noPassword = Object.assign(new Error('WRONGPASS'), { command: { name: 'auth', args: ['user', 'hush'] } });
    logger.error({ event: 'redis.failed', error: noPassword });
    expect(lines).toHaveLength(4);
    expect(lines.join()).not.toContain('hush');
    expect(lines.join()).toContain('23502');
  });

  it('never holds the text that was no URL', () => {
    try {
      new URL('http://x:99999/?code=hush');
    } catch (error) {
      logger.error({ event: 'request.failed', error });
    }
    expect(lines[0]).toContain('ERR_INVALID_URL');
    expect(lines[0]).not.toContain('hush');
  });
});
