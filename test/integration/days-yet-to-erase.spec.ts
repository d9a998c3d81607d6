import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { DayDropper } from '../../src/retention/day-dropper.service.js';
import { Erasures } from '../../src/retention/erasures.service.js';
import type { TestLedger } from '../support/ledger.js';
import { running, TestRetention } from '../support/retention.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

describe.each(stacks)('a day that is past its retention, with texts to erase, on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let retention: TestRetention;
  let test: TestLedger;
  let directory: string;
  let erasures: Erasures;

  beforeAll(async () => {
    prepared = await stack.prepare();
    directory = await mkdtemp(join(tmpdir(), 'heraut-export-'));
    retention = await TestRetention.open({ ...prepared.settings, EXPORT_DIR: directory });
    ({ test } = retention);
    erasures = new Erasures(test.postgres);
  });
  beforeEach(() => retention.clear());
  afterEach(async () => {
    for (const file of await files()) await rm(join(directory, file));
    await dropOld({ ...test.config.settings, EXPORT_DIR: undefined });
  });
  afterAll(async () => {
    await test.close();
    await prepared.release();
    await rm(directory, { recursive: true, force: true });
  });

  const files = () => readdir(directory);
  const dropOld = (settings = test.config.settings) => new DayDropper(test.postgres, { settings }).dropExpired(running);
  const exported = async () => {
    const [file, ...others] = await files();
    expect(others).toEqual([]);
    return gunzipSync(await readFile(join(directory, file!))).toString();
  };

  it('is not exported before the bodies are erased whose days are over at the same moment', async () => {
    const at = await retention.makeDay(40);
    await retention.add(at, 'delivered');
    const bodiesAsLong = { ...test.config.settings, BODY_RETENTION_DAYS: test.config.settings.RETENTION_DAYS };
    await dropOld(bodiesAsLong);
    expect(await files()).toEqual([]);
    await retention.eraseOld();
    await dropOld(bodiesAsLong);
    expect(await exported()).not.toContain('secret');
    expect(await retention.report(at)).toMatchObject([{ dropped_at: expect.any(Date) }]);
  });

  it('is not exported before a body that was kept for its delivery is erased', async () => {
    const at = await retention.makeDay(40);
    const key = await retention.add(at, 'waiting');
    await retention.eraseOld();
    await test.sql(`UPDATE delivery SET state = 'delivered', next_at = NULL WHERE notification_id = $1`, [
      key.notificationId,
    ]);
    await dropOld();
    expect(await files()).toEqual([]);
    await retention.eraseOld();
    await dropOld();
    expect(await exported()).not.toContain('secret');
  });

  it('is exported with the bodies that are to be kept as long as it is', async () => {
    await retention.setDays({ cases: 90 });
    await retention.add(await retention.makeDay(40), 'delivered');
    await dropOld();
    expect(await exported()).toContain('secret');
  });

  it('is walked through once more where its tables were restored by hand, with their bodies', async () => {
    const at = await retention.makeDay(40);
    const key = await retention.add(at, 'delivered');
    await retention.eraseOld();
    await test.sql(`UPDATE notification SET body = '{"secret":1}' WHERE id = $1`, [key.notificationId]);
    await dropOld();
    expect(await files()).toEqual([]);
    await retention.eraseOld();
    await dropOld();
    expect(await exported()).not.toContain('secret');
  });

  it.each(['counting', 'counted', 'erasing', 'ending'])(
    'is not exported while an erasure about an object is %s that was asked for before it was past its retention',
    async (state) => {
      await retention.setDays({ cases: 90 });
      const at = await retention.makeDay(40);
      const key = await retention.add(at, 'delivered');
      const { id } = await erasures.aboutMainObject('https://zaken.example.org/zaken/1');
      await test.sql(`UPDATE erasure SET state = $2, requested_at = now() - interval '20 days' WHERE id = $1`, [
        id,
        state,
      ]);
      await dropOld();
      expect(await files()).toEqual([]);
      expect(await retention.bodyOf(key)).not.toBeNull();
      await test.sql(`UPDATE erasure SET state = 'abandoned' WHERE id = $1`, [id]);
      await dropOld();
      expect(await files()).toHaveLength(1);
    },
  );

  it('waits for one that was asked for since only while its walk has not passed the day', async () => {
    await retention.setDays({ cases: 90 });
    const key = await retention.add(await retention.makeDay(40), 'delivered');
    const { id } = await erasures.aboutMainObject('https://zaken.example.org/zaken/1');
    const become = (state: string, reached: string) =>
      test.sql('UPDATE erasure SET state = $2, reached = $3 WHERE id = $1', [id, state, reached]);
    await become('erasing', key.notificationId);
    await dropOld();
    expect(await files()).toEqual([]);
    // Where one is counted each day and never confirmed, one is always open.
    await become('counted', key.notificationId);
    await dropOld();
    expect(await files()).toHaveLength(1);
  });

  it('is exported while one erases that has passed the day', async () => {
    await retention.setDays({ cases: 90 });
    await retention.add(await retention.makeDay(40), 'delivered');
    const later = await retention.add(await retention.makeDay(9), 'delivered');
    const { id } = await erasures.aboutMainObject('https://zaken.example.org/zaken/1');
    await test.sql(`UPDATE erasure SET state = 'erasing', reached = $2 WHERE id = $1`, [id, later.notificationId]);
    await dropOld();
    expect(await files()).toHaveLength(1);
  });

  it('is exported although a notification of another day is being erased', async () => {
    await retention.setDays({ cases: 90 });
    const [day, other] = [await retention.makeDay(40), await retention.makeDay(9)];
    const key = await retention.add(day, 'delivered');
    const { notificationId } = await retention.add(other, 'delivered');
    await erasures.ofNotification(notificationId);
    const { id } = await erasures.ofNotification(key.notificationId);
    await dropOld();
    expect(await files()).toEqual([]);
    await test.sql(`UPDATE erasure SET state = 'done' WHERE id = $1`, [id]);
    await dropOld();
    expect(await files()).toHaveLength(1);
  });

  it('is kept where an erasure is asked for while it is exported', async () => {
    await retention.setDays({ cases: 90 });
    const at = await retention.makeDay(40);
    const key = await retention.add(at, 'delivered');
    const query: typeof test.postgres.query = async (statement, values) => {
      const rows = await test.postgres.query(statement, values);
      if (statement.name === 'note-exported') await erasures.ofNotification(key.notificationId);
      return rows as never;
    };
    const postgres = Object.create(test.postgres, { query: { value: query } }) as typeof test.postgres;
    await new DayDropper(postgres, test.config).dropExpired(running);
    expect(await retention.bodyOf(key)).not.toBeNull();
    expect(await retention.report(at)).toMatchObject([{ dropped_at: null }]);
  });

  it('is dropped at once where days are not exported: nothing is left of it', async () => {
    const at = await retention.makeDay(40);
    await retention.add(at, 'delivered');
    await dropOld({ ...test.config.settings, EXPORT_DIR: undefined });
    expect(await retention.report(at)).toMatchObject([{ dropped_at: expect.any(Date) }]);
  });
});
