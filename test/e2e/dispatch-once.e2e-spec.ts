import { afterEach, describe, expect, it } from 'vitest';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { createPartition, partitionsBetween } from '../../src/ledger/partitions.js';
import { eventually } from '../support/eventually.js';
import { Installation, type Published } from '../support/installation.js';
import { TestLedger } from '../support/ledger.js';
import { answer, arrival, Receiver, type Behaviour } from '../support/receiver.js';
import { embedded, real, type PreparedStack, type Stack } from '../support/stacks.js';

const project = fileURLToPath(new URL('../..', import.meta.url));
const program = join(project, 'dist/dispatch-once.js');

interface Ended {
  status: number | null;
  output: string;
  errors: string;
}

const byNode = [process.execPath, program];
/** As cron runs it. */
const byNpm = ['npm', 'run', '--silent', 'dispatch', '--'];

function start(
  settings: Record<string, string>,
  words = ['--once'],
  [command = '', ...before] = byNode,
): { child: ChildProcess; ended: Promise<Ended> } {
  const child = spawn(command, [...before, ...words], {
    cwd: project,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, TZ: 'UTC', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended: Ended = { status: null, output: '', errors: '' };
  child.stdout.on('data', (bytes: Buffer) => (ended.output += bytes.toString('utf8')));
  child.stderr.on('data', (bytes: Buffer) => (ended.errors += bytes.toString('utf8')));
  return { child, ended: once(child, 'close').then(([status]) => ({ ...ended, status: status as number | null })) };
}

const dispatch = (settings: Record<string, string>, words?: string[]): Promise<Ended> => start(settings, words).ended;

/** Later than the next look at what is held: most looks find the window full. */
const answerLate: Behaviour = (_request, response) => void setTimeout(() => response.writeHead(204).end(), 500);

interface Done {
  dispatched: number;
  released: number;
  /** By reason. */
  held: Record<string, number>;
}

/** The counts in its last line. */
function doneBy({ status, output, errors }: Ended): Done {
  expect({ status, errors }).toEqual({ status: 0, errors: '' });
  const done = output.split('\n').find((line) => line.includes('"dispatch.done"'));
  return JSON.parse(done ?? '{}') as Done;
}

/** How many deliveries it says it handed out. */
const dispatchedBy = (ended: Ended): number => doneBy(ended).dispatched;

describe('one run of the dispatcher', () => {
  const names = ['a', 'b', 'c'];
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;
  let subscriptions: string[];

  async function begin(stack: Stack, roles: string[], settings: Record<string, string> = {}): Promise<void> {
    [prepared, receiver] = [await stack.prepare(), await Receiver.start()];
    Object.assign(prepared.settings, settings);
    heraut = await Installation.startWith(prepared, roles);
  }

  afterEach(async () => {
    await heraut.end();
    await receiver.stop();
    await prepared.release();
  });

  it('has the workers send the due deliveries, each once, however many runs there are at the same time', async () => {
    await begin(real, ['api', 'worker,dispatcher']);
    await heraut.setRetryPolicy({ maxRetries: 3, backoffFactor: 600 });
    const published = await publishTo(names, 20, () => receiver.always(answer(400)));
    await everyOneIs('waiting', published);
    expect(receiver.arrivals).toHaveLength(60);
    await heraut.processes[1]!.stop();
    await heraut.add('worker');
    for (const { id } of published)
      await Promise.all(subscriptions.map((subscription) => heraut.command('retry', id, subscription)));
    receiver.always(answer(204));
    const runs = await Promise.all(Array.from({ length: 4 }, () => dispatch(prepared.settings)));
    expect(runs.map(dispatchedBy).reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(60);
    await eventually(async () => {
      if (receiver.arrivals.length >= 120) return true;
      dispatchedBy(await dispatch(prepared.settings)); // deliveries for which the endpoint had no room are for the next run
      return false;
    }, 'every second attempt');
    await everyOneIs('delivered', published);
    const expected = keysOf(published);
    expect(receiver.arrivals.toSorted()).toEqual([...expected, ...expected].sort());
    expect(dispatchedBy(await dispatch(prepared.settings))).toBe(0);
  });

  it('sends the due deliveries itself, each once, where no broker brings them to a worker', async () => {
    await begin(real, ['api'], { AMQP_URL: '' });
    const published = await publishTo(names, 20);
    const ledger = new pg.Client({ connectionString: prepared.settings.DATABASE_URL });
    await ledger.connect();
    const lastYear = Date.now() - 365 * 86_400_000;
    for (const partition of partitionsBetween(lastYear, lastYear)) await ledger.query(createPartition(partition));
    await ledger.query(
      `INSERT INTO once_key VALUES ('a', 'publish', 'k', gen_random_uuid(), NULL, false, now() - interval '1 s')`,
    );
    const before = await dispatch(prepared.settings);
    // It does the upkeep too: there may be no other dispatcher.
    const { rows } = await ledger.query<{ days: string[]; keys: number }>(
      `SELECT ARRAY(SELECT relname::text FROM pg_class WHERE relname = ANY ($1)) AS days, (SELECT count(*)::int FROM once_key) AS keys`,
      [partitionsBetween(lastYear, lastYear).map(({ name }) => name)],
    );
    expect(rows).toEqual([{ days: [], keys: 0 }]);
    await ledger.end();
    // A delivery accepted without a queue is due in a second; the first run may come before that.
    await eventually(async () => {
      const runs = await Promise.all(Array.from({ length: 3 }, () => dispatch(prepared.settings)));
      return [before, ...runs].every(({ status }) => status === 0) && receiver.arrivals.length >= 60;
    }, 'every one to arrive');
    expect(receiver.arrivals.toSorted()).toEqual(keysOf(published).sort());
    await everyOneIs('delivered', published);
  });

  it('sends all that is about one object, one after the other, where no broker brings them to a worker', async () => {
    await begin(real, ['api'], { AMQP_URL: '' });
    const channel = await heraut.createChannel();
    const subscription = await heraut.subscribe({ channel, url: receiver.url });
    const path = `/admin/v1/subscriptions/${subscription}`;
    expect((await heraut.api.call('PATCH', path, { body: { ordering: 'per-object' } })).status).toBe(200);
    // Longer than a chunk stays in the queue after its first delivery began.
    receiver.always((_request, response) => void setTimeout(() => response.writeHead(204).end(), 400));
    const published: string[] = [];
    for (let nr = 0; nr < 6; nr++) published.push((await heraut.publish(channel)).id);
    // A notification accepted without a queue is due in a second; the others wait for their turn.
    const dispatched = await eventually(
      async () => dispatchedBy(await dispatch(prepared.settings)),
      'the first to be due',
    );
    expect(dispatched).toBe(1);
    expect(receiver.notifications.map(({ headers }) => headers['webhook-id'])).toEqual(published);
  });

  it('sends the next about an object in the run that ends the one before it as unknown', async () => {
    await begin(real, ['api'], { AMQP_URL: '' });
    const channel = await heraut.createChannel();
    const subscription = await heraut.subscribe({ channel, url: receiver.url });
    const body = { ordering: 'per-object', deliveryGuarantee: 'at-most-once' };
    const { status } = await heraut.api.call('PATCH', `/admin/v1/subscriptions/${subscription}`, { body });
    expect(status).toBe(200);
    const [first, second] = [await heraut.publish(channel), await heraut.publish(channel)];
    const ledger = await TestLedger.open(prepared.settings);
    await ledger.sql("INSERT INTO process (id, roles, expires_at) VALUES ('killed', '{worker}', '-infinity')");
    await ledger.sql(
      `UPDATE delivery SET state = 'sending', process = 'killed', next_at = now() + interval '1 hour' WHERE state = 'waiting'`,
    );
    expect(dispatchedBy(await dispatch(prepared.settings))).toBe(1);
    const stateOf = ({ id }: Published) => ledger.state({ notificationId: id, subscriptionId: subscription });
    expect([await stateOf(first), await stateOf(second)]).toEqual(['unknown', 'delivered']);
    await ledger.close();
  });

  it.each([true, false])(
    'waits until it may end what a run that was killed was sending, where no other process runs, and ends well where that does: %s',
    async (endsWell) => {
      await begin(real, [], { AMQP_URL: '' });
      const ledger = await TestLedger.open(prepared.settings); // migrates
      const [claimed] = await ledger.accept();
      await ledger.claims.claim(claimed!, 10_000);
      await ledger.age([claimed!], 3_600_000);
      await ledger.sql(
        "INSERT INTO process (id, roles, expires_at) VALUES ($1, '{worker,dispatcher}', now() - interval '1 hour')",
        [ledger.heartbeat.processId],
      );
      if (!endsWell) await ledger.sql("ALTER TABLE delivery ADD CHECK (state <> 'unknown') NOT VALID");
      const { ended } = start(prepared.settings);
      let isOver = false;
      void ended.then(() => (isOver = true));
      await eventually(async () => {
        // Its heartbeat has been seen for long.
        await ledger.sql("UPDATE process SET steady_since = now() - interval '1 minute' WHERE expires_at > now()");
        return isOver;
      }, 'the run to end');
      const { status, output } = await ended;
      expect([status, await ledger.state(claimed!)]).toEqual(endsWell ? [0, 'unknown'] : [1, 'sending']);
      const done = output.split('\n').find((line) => line.includes('"dispatch.done"'));
      expect(JSON.parse(done ?? '{}')).toMatchObject({ failedTasks: endsWell ? [] : ['sending-ended'] });
      await ledger.close();
    },
  );

  it('sends what is due before it waits for that, and in the same run what becomes due by it', async () => {
    await begin(real, ['api'], { AMQP_URL: '' });
    const [channel, other] = [await heraut.createChannel(), await heraut.createChannel()];
    const subscription = await heraut.subscribe({ channel, url: receiver.url });
    await heraut.subscribe({ channel: other, url: receiver.url });
    const body = { ordering: 'per-object', deliveryGuarantee: 'at-most-once' };
    const { status } = await heraut.api.call('PATCH', `/admin/v1/subscriptions/${subscription}`, { body });
    expect(status).toBe(200);
    const [first, second] = [await heraut.publish(channel), await heraut.publish(channel)];
    const ledger = await TestLedger.open(prepared.settings);
    // No process counts as steady, so that none may be taken for dead.
    await ledger.sql(
      `CREATE FUNCTION unsteady() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.steady_since := now(); RETURN NEW; END'`,
    );
    await ledger.sql(
      'CREATE TRIGGER unsteady BEFORE INSERT OR UPDATE ON process FOR EACH ROW EXECUTE FUNCTION unsteady()',
    );
    await ledger.sql('UPDATE process SET steady_since = now()');
    await ledger.sql(
      "INSERT INTO process (id, roles, expires_at) VALUES ('killed', '{worker}', now() - interval '1 hour')",
    );
    await ledger.sql(
      `UPDATE delivery SET state = 'sending', process = 'killed', next_at = now() - interval '1 hour' WHERE state = 'waiting'`,
    );
    const due = await heraut.publish(other);
    await allDue();
    const { ended } = start(prepared.settings);
    let isOver = false;
    void ended.then(() => (isOver = true));
    const arrived = () => receiver.notifications.map(({ headers }) => headers['webhook-id']);
    await eventually(() => arrived().includes(due.id), 'what is due to arrive');
    const stateOf = ({ id }: Published) => ledger.state({ notificationId: id, subscriptionId: subscription });
    expect([isOver, await stateOf(first)]).toEqual([false, 'sending']);
    await ledger.sql('DROP TRIGGER unsteady ON process');
    await eventually(async () => {
      await ledger.sql("UPDATE process SET steady_since = now() - interval '1 minute' WHERE expires_at > now()");
      return isOver;
    }, 'the run to end');
    expect(dispatchedBy(await ended)).toBe(2);
    expect([await stateOf(first), await stateOf(second)]).toEqual(['unknown', 'delivered']);
    expect(arrived()).toEqual([due.id, second.id]);
    await ledger.close();
  });

  it('goes on until a slow receiver has all that was held for it, and leaves what is paused', async () => {
    await begin(real, ['api,worker']);
    const published = await publishTo(['a', 'b'], 100, async () => {
      for (const subscription of subscriptions) await tell(subscription, 'pause');
    });
    receiver.always(answerLate);
    await tell(subscriptions[0]!, 'resume');
    const { held, released } = doneBy(await dispatch(prepared.settings));
    expect(held).toEqual({ paused: 100 });
    expect(released).toBeGreaterThanOrEqual(100); // a worker may have held some of them again
    expect(receiver.arrivals.toSorted()).toEqual(published.map(({ id }) => arrival(id, '/webhook/a')).sort());
  });

  it('sends what it had to hold itself as well, where no broker brings it to a worker', async () => {
    await begin(real, ['api'], { AMQP_URL: '' });
    const published = await publishTo(['a'], 200, () => receiver.always(answerLate));
    await allDue();
    const done = doneBy(await dispatch(prepared.settings));
    expect([done.dispatched, done.held]).toEqual([200, {}]);
    expect(done.released).toBeGreaterThan(0);
    expect(receiver.arrivals.toSorted()).toEqual(published.map(({ id }) => arrival(id, '/webhook/a')).sort());
  });

  it('ends where all that is left is held for a receiver that is down', async () => {
    await begin(real, ['api,worker']);
    const channel = await heraut.createChannel();
    await heraut.subscribe({ channel, url: receiver.url });
    await receiver.stop();
    // Each fails once: without a dispatcher none is sent again.
    await eventually(async () => {
      await heraut.publish(channel);
      const { body } = await heraut.api.call('GET', '/admin/v1/endpoints');
      return (body as { endpoints: unknown[] }).endpoints.length > 0;
    }, 'the receiver to be parked');
    await heraut.publishMany(channel, 100);
    const { held } = doneBy(await dispatch(prepared.settings));
    expect(held['endpoint-parked']).toBeGreaterThan(0);
  });

  it.each([
    ['it', byNode],
    ['npm', byNpm],
  ])('ends with its calls when %s is told to stop, and leaves the rest to the next run', async (_, command) => {
    await begin(real, ['api'], { AMQP_URL: '' });
    const published = await publishTo(['a'], 200, () => receiver.always(answerLate));
    await allDue();
    const run = start(prepared.settings, ['--once'], command);
    await eventually(() => receiver.arrivals.length > 0, 'the first call');
    run.child.kill('SIGTERM');
    const { status, output } = await run.ended;
    expect({ status, isDone: output.includes('"dispatch.done"') }).toEqual({ status: 0, isDone: true });
    const before = receiver.arrivals.length;
    expect(before).toBeLessThan(200);
    await allDue();
    await dispatch(prepared.settings);
    expect(receiver.arrivals.toSorted()).toEqual(published.map(({ id }) => arrival(id, '/webhook/a')).sort());
  });

  it('says so and fails where the embedded database is in use', async () => {
    await begin(embedded, ['api,worker,dispatcher']);
    const { status, errors, output } = await dispatch(prepared.settings);
    expect(status).toBe(1);
    expect(errors).toMatch(/ is in use by process \d+\./);
    expect(errors).toContain(String(heraut.api.pid));
    expect(errors).not.toMatch(/^\s+at /m); // no stack trace for an error that an operator can fix
    expect(output).toBe('');
  });

  it('fails where it has the settings of no database, as in a line of cron, and makes none', async () => {
    await begin(embedded, []);
    const directory = join(prepared.settings.DATA_DIR!, 'elsewhere');
    const { status, errors } = await dispatch({ DATA_DIR: directory });
    expect(status).toBe(1);
    expect(errors).toContain(`DATABASE_URL is not set, and there is no embedded database in DATA_DIR (${directory}).`);
    expect(existsSync(directory)).toBe(false);
  });

  it('has the settings of a file, whatever characters they have, by the line of cron that the documents give', async () => {
    await begin(real, []);
    const directory = mkdtempSync(join(tmpdir(), 'heraut-cron-'));
    const file = join(directory, 'heraut.env');
    const settings = {
      ...prepared.settings,
      DATABASE_URL: `${prepared.settings.DATABASE_URL}?sslmode=disable&keepalives=1`,
      TTL_IDEMPOTENCY_PER_CUSTOMER_SEC: '{"cases": 604800}',
      DEFAULT_FROM_EMAIL: 'Heraut <heraut@example.org>',
    };
    writeFileSync(
      file,
      Object.entries(settings)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    );
    const page = readFileSync(join(project, 'docs/running.md'), 'utf8');
    const line = /^(?:\* ){5}(cd \/opt\/heraut .*)$/m.exec(page)![1]!;
    const command = line.replace('/opt/heraut', project).replace('/etc/heraut.env', file);
    const { status, output, errors } = await start({}, [command], ['sh', '-c']).ended;
    expect({ status, errors, isDone: output.includes('"dispatch.done"') }).toEqual({
      status: 0,
      errors: '',
      isDone: true,
    });
    rmSync(directory, { recursive: true });
  });

  it('says that a newer version has migrated the database', async () => {
    await begin(real, []);
    const ledger = await TestLedger.open(prepared.settings); // migrates
    await ledger.postgres.dataSource.query("INSERT INTO migrations (timestamp, name) VALUES (1, 'OfTomorrow')");
    await ledger.close();
    const { status, output } = await dispatch(prepared.settings);
    expect(status).toBe(0);
    expect(output).toMatch(/"event":"ledger\.migrated-by-newer","migrations":\["OfTomorrow"\]/);
  });

  it.each([[[]], [['once']], [['--once', 'now']]])('answers the arguments %j with how it is used', async (words) => {
    await begin(embedded, []);
    const { status, errors } = await dispatch(prepared.settings, words);
    expect(status).toBe(1);
    expect(errors).toMatch(/^Usage: npm run dispatch -- --once$/m);
  });

  async function publishTo(
    paths: string[],
    count: number,
    then: () => void | Promise<void> = () => {},
  ): Promise<Published[]> {
    const channel = await heraut.createChannel();
    subscriptions = [];
    for (const path of paths) subscriptions.push(await heraut.subscribe({ channel, url: `${receiver.url}/${path}` }));
    await then();
    return heraut.publishMany(channel, count);
  }

  async function tell(subscription: string, verb: 'pause' | 'resume'): Promise<void> {
    expect((await heraut.api.call('POST', `/admin/v1/subscriptions/${subscription}/${verb}`)).status).toBe(200);
  }

  /** A notification accepted without a queue is due in a second. */
  async function allDue(): Promise<void> {
    const ledger = new pg.Client({ connectionString: prepared.settings.DATABASE_URL });
    await ledger.connect();
    await eventually(async () => {
      const { rows } = await ledger.query("SELECT FROM delivery WHERE state = 'waiting' AND next_at > now()");
      return rows.length === 0;
    }, 'every one to be due');
    await ledger.end();
  }

  const keysOf = (published: Published[]) =>
    published.flatMap(({ id }) => names.map((name) => arrival(id, `/webhook/${name}`)));

  async function everyOneIs(state: string, published: Published[]): Promise<void> {
    for (const { id } of published) {
      await eventually(async () => {
        const { body } = await heraut.api.call('GET', `/admin/v1/deliveries?notification=${id}`);
        const { deliveries } = body as { deliveries: { state: string }[] };
        return deliveries.length === names.length && deliveries.every((delivery) => delivery.state === state);
      }, `every delivery to be ${state}`);
    }
  }
});
