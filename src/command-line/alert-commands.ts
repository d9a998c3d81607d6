import { Option, type Command } from 'commander';
import { exits } from './exits.js';
import { block, fields, moment, table } from './layout.js';
import { wholeNumber } from './options.js';
import { showList } from './pages.js';
import { printable } from './printable.js';
import type { Session } from './session.js';

const path = '/admin/v1/alerts';

interface Alert {
  subject: string;
  since: string;
  resolvedAt: string | null;
  title: string;
  what: string;
  toDo: string;
  runbook: string;
}

interface TestResult {
  channel: string;
  recipient: string | null;
  isSent: boolean;
  error: string | null;
}

/** Each rule has fields of its own; what holds for all of them stands beside them. */
type Rules = Record<string, Record<string, unknown> | boolean | number | null>;

interface ListOptions {
  state?: string;
  limit: number;
  cursor?: string;
}

export function addAlertCommands(program: Command, session: Session): void {
  const alerts = program.command('alerts').description('Alerts: what is wrong now, and what was.');

  alerts
    .command('list')
    .description('Lists alerts with what to do about each, the newest first.')
    .addOption(new Option('--state <state>', 'Only those that are open, or over.').choices(['open', 'resolved']))
    .option('--limit <count>', 'At most so many.', wholeNumber(1, 10_000), 50)
    .option('--cursor <cursor>', 'Goes on where a list ended.')
    .action(({ limit, ...query }: ListOptions) =>
      showList<Alert>(session, { path, key: 'alerts', query: { ...query }, limit }, (alerts) =>
        alerts.length === 0 ? 'No alerts.' : alerts.map(drawAlert).join('\n\n'),
      ),
    );
  alerts
    .command('test')
    .description(
      'Sends a test to every operator, and says what came of it. Takes up to two minutes where a server does not answer.',
    )
    .action(async () => {
      const answer = await session.client.request<{ results: TestResult[] }>('POST', `${path}/test`);
      session.show(answer, () => drawTest(session, answer.results));
      if (answer.results.length === 0 || answer.results.some(({ isSent }) => !isSent)) session.exit = exits.failed;
    });
  alerts
    .command('rules')
    .description('Shows what operators, and owners of subscriptions, are told of, and when.')
    .action(async () => {
      const rules = await session.client.request<Rules>('GET', '/admin/v1/alert-rules');
      session.show(rules, () => drawRules(session, rules));
    });
}

function drawRules({ terminal }: Session, rules: Rules): string {
  const drawn = Object.entries(rules).map(([name, rule]) => [name, textOfRule(rule)]);
  return fields(terminal, Object.fromEntries(drawn) as Record<string, string>);
}

function textOfRule(rule: Rules[string]): string {
  if (typeof rule !== 'object' || rule === null) return rule === null ? 'never' : String(rule);
  const { isEnabled, ...more } = rule;
  if (isEnabled === false) return 'off';
  const values = Object.entries(more).map(([name, value]) => `${name} ${String(value)}`);
  return values.length === 0 ? 'on' : values.join(', ');
}

function drawAlert({ subject, since, resolvedAt, title, what, toDo, runbook }: Alert): string {
  const state = resolvedAt === null ? `open since ${moment(since)}` : `from ${moment(since)} to ${moment(resolvedAt)}`;
  return [
    `${printable(title)}: ${printable(subject)}, ${state}`,
    block(what),
    ...(resolvedAt === null ? [block(toDo), block(runbook)] : []),
  ].join('\n');
}

const drawTest = ({ terminal }: Session, results: readonly TestResult[]): string =>
  results.length === 0
    ? 'Nobody is told: set ALERT_WEBHOOK_URL, or EMAIL_HOST and ALERT_MAIL_TO, for every process.'
    : table(
        terminal,
        ['channel', 'recipient', 'result'],
        results.map(({ channel, recipient, isSent, error }) => [channel, recipient, isSent ? 'sent' : error]),
      );
