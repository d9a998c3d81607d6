import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Statement, Values } from '../../src/infra/postgres/statement.js';
import type { OnceKey } from '../../src/ledger/once-key.js';
import { replaceScheduled } from '../../src/ledger/replace-scheduled.js';
import { newNotification, type TestLedger } from '../support/ledger.js';
import { onTerms, requestKey } from '../support/once-keys.js';
import { running, TestRetention } from '../support/retention.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

describe.each(stacks)(
  'the body of a scheduled notification that moves to another channel, on the $name stack',
  (stack) => {
    let prepared: PreparedStack;
    let retention: TestRetention;
    let test: TestLedger;
    let id: string;
    let request: OnceKey;

    beforeAll(async () => {
      prepared = await stack.prepare();
      retention = await TestRetention.open(prepared.settings);
      ({ test } = retention);
    });
    /** One that was accepted nine days ago in the channel `other`, whose bodies are kept for 30. */
    beforeEach(async () => {
      await retention.clear();
      await retention.setDays({ other: 30 });
      id = uuidv7({ msecs: await retention.makeDay(9) });
      request = requestKey(randomUUID(), { operation: 'put' });
      await test.acceptAll([
        onTerms({ ...newNotification(1), id, channel: 'other', request, notBefore: Date.now() + 3_600_000 }),
      ]);
    });
    afterAll(async () => {
      await test.close();
      await prepared.release();
    });

    async function moveTo(channel: string): Promise<void> {
      const content = { content: null, channel, body: '{"moved":true}', traceParent: null };
      const terms = {
        notBefore: Date.now() + 3_600_000,
        expiresAt: null,
        subscriptionIds: [randomUUID()],
        inOrder: null,
      };
      const version = await test.catalogueVersion();
      const replaced = await replaceScheduled(test.postgres, version, { request, ...content, ...terms });
      expect(replaced.kind).toBe('replaced');
    }

    async function endIt(): Promise<void> {
      await test.sql(`UPDATE notification SET not_before = now() - interval '1 s' WHERE id = $1`, [id]);
      await test.sql(`UPDATE delivery SET state = 'delivered', next_at = NULL WHERE notification_id = $1`, [id]);
    }

    const body = () => retention.bodyOf({ notificationId: id, subscriptionId: '' });

    it('is erased when it is over, although the day was walked through for that channel before', async () => {
      await retention.eraseOld();
      await moveTo('cases');
      await retention.eraseOld();
      expect(await body()).toContain('moved');
      await endIt();
      await retention.eraseOld();
      expect(await body()).toBeNull();
      expect(await test.sql('SELECT FROM kept_body')).toEqual([]);
    });

    it('is kept for as long as those of that channel', async () => {
      await moveTo('longer');
      await retention.setDays({ longer: 20 });
      await endIt();
      await retention.eraseOld();
      expect(await body()).toContain('moved');
      expect(await test.sql('SELECT FROM kept_body')).toEqual([]);
      await retention.setDays({ longer: 5 });
      await retention.eraseOld();
      expect(await body()).toBeNull();
    });

    it('is erased although it moves while it is forgotten for the days of the channel that it leaves', async () => {
      await retention.setDays({ other: 5 });
      await retention.eraseOld();
      expect(await test.sql('SELECT FROM kept_body')).toHaveLength(1);
      await retention.setDays({ other: 30 });
      const query = async (statement: Statement, values?: Values) => {
        const rows = await test.postgres.query(statement, values);
        if (statement.name === 'read-channels') await moveTo('cases');
        return rows;
      };
      await retention.eraseOld(
        running,
        undefined,
        Object.create(test.postgres, { query: { value: query } }) as typeof test.postgres,
      );
      await endIt();
      await retention.eraseOld();
      expect(await body()).toBeNull();
    });
  },
);
