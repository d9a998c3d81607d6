import type { Command } from 'commander';
import type { Finding, Verdict } from '../doctor/finding.js';
import { AdminRefusal } from './admin-client.js';
import type { Health } from './answers.js';
import { CommandFailure, exits } from './exits.js';
import { printable, printableLines } from './printable.js';
import type { Session } from './session.js';
import type { Terminal } from './terminal.js';

/** From RFC 9110 a `Date` has whole seconds. */
const mostApartSeconds = 5;

export function addDoctorCommand(program: Command, session: Session): void {
  program
    .command('doctor')
    .description(
      'Looks at configuration, servers, versions, clocks and permissions from here, and says what to do. Run it with the settings of a process.',
    )
    .option('--strict', 'Fails for warnings too.')
    .action(async ({ strict = false }: { strict?: boolean }) => {
      // Drivers of three servers: only this command needs them.
      const { examine } = await import('../doctor/examine.js');
      const findings = [...(await examine(session.environment)), ...(await examineServer(session))];
      const bad: Verdict[] = strict ? ['failed', 'warning'] : ['failed'];
      const isWell = !findings.some(({ verdict }) => bad.includes(verdict));
      session.show({ ok: isWell, findings }, () => draw(session.terminal, findings));
      if (!isWell) session.exit = exits.failed;
    });
}

/** The running Heraut, as a caller sees it. */
async function examineServer(session: Session): Promise<Finding[]> {
  try {
    const { status, headers, body } = await session.client.look('/health/ready', isHealth);
    const health = judgeHealth(session.url, status, headers.get('date'), body);
    return [health, ...compareSettings(session, body), await tryToken(session)];
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    // A URL that is refused may have a password in it.
    const found = error.exit === exits.wrongUse ? 'Heraut cannot be asked' : `Heraut does not answer at ${session.url}`;
    return [
      { name: 'health', verdict: 'failed', found, advice: error.message },
      { name: 'admin-api', verdict: 'skipped', found: 'Heraut was not reached' },
    ];
  }
}

function isHealth(body: unknown): body is Health {
  const { status, parts, down } = (body ?? {}) as Partial<Health>;
  return typeof status === 'string' && typeof parts === 'object' && parts !== null && Array.isArray(down);
}

function judgeHealth(url: string, status: number, date: string | null, body: Health): Finding {
  const name = 'health';
  const apart = (Date.parse(date ?? '') - Date.now()) / 1000;
  const found = `${url} is ${body.status}`;
  const down = body.down.map((part) => `${part}: ${body.parts[part]?.error ?? 'down'}`).join('; ');
  if (status !== 200) return { name, verdict: 'failed', found, advice: down };
  if (body.status !== 'ready') return { name, verdict: 'warning', found, advice: down };
  if (Math.abs(apart) <= mostApartSeconds) return { name, verdict: 'ok', found };
  return {
    name,
    verdict: 'warning',
    found: `${found}; its clock is ${Math.round(apart)} s from this machine’s`,
    advice: 'Run NTP on both: tokens that are made here may be refused there.',
  };
}

const settingOf = { rabbitmq: 'AMQP_URL', redis: 'REDIS_URL' } as const;

/**
 * In a shell without the settings of a process all looks well, because other servers are looked at: those of the
 * embedded default.
 */
function compareSettings({ url, environment }: Session, { parts }: Health): Finding[] {
  const unset = (['rabbitmq', 'redis'] as const).filter((part) => parts[part] && !environment[settingOf[part]]);
  if (unset.length === 0) return [];
  return [
    {
      name: 'same-servers',
      verdict: 'failed',
      found: `${url} uses servers that the settings here do not name: ${unset.map((part) => settingOf[part]).join(', ')} not set`,
      advice:
        'Run this with the settings of one of its processes. The findings about servers above are not about its own.',
    },
  ];
}

async function tryToken({ client }: Session): Promise<Finding> {
  const name = 'admin-api';
  try {
    await client.request('GET', '/admin/v1/retry-policy');
    return { name, verdict: 'ok', found: 'lets this command line in' };
  } catch (error) {
    if (!(error instanceof AdminRefusal) && !(error instanceof CommandFailure)) throw error;
    return { name, verdict: 'failed', found: error.message, advice: adviceOn(error) };
  }
}

function adviceOn(error: AdminRefusal | CommandFailure): string {
  if (error instanceof CommandFailure) return error.message;
  if (error.status === 421)
    return 'It is not asked by a name of its ALLOWED_HOSTS: set HERAUT_URL to one, or on its own machine to http://127.0.0.1:… with its port.';
  if (error.status >= 500) return 'The other findings say what is down; it says more in its log.';
  return 'Set HERAUT_TOKEN, or SUPERUSER_CLIENT_ID and SUPERUSER_SECRET as the server has them.';
}

const marks: Record<Verdict, string> = { ok: 'ok', warning: 'WARNING', failed: 'FAILED', skipped: 'skipped' };
const colours: Record<Verdict, number> = { ok: 32, warning: 33, failed: 31, skipped: 90 };

function draw(terminal: Terminal, findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ name }) => name.length));
  const lines = findings.flatMap(({ name, verdict, found, advice }) => {
    const mark = marks[verdict].padEnd(8);
    const coloured = terminal.isInteractive ? `\u001b[${colours[verdict]}m${mark}\u001b[39m` : mark;
    const indent = ' '.repeat(width + 10);
    const first = `${coloured} ${name.padEnd(width)} ${printableLines(found).replaceAll('\n', `\n${indent}`)}`;
    return advice === undefined ? [first] : [first, `${indent}→ ${printable(advice)}`];
  });
  const count = (verdict: Verdict) => findings.filter((each) => each.verdict === verdict).length;
  return [...lines, '', `${count('ok')} ok, ${count('warning')} warnings, ${count('failed')} failed`].join('\n');
}
