import { Option, type Command } from 'commander';
import type { Alert, AlertTest } from './answers.js';
import { exits } from './exits.js';
import { fields, moment, table } from './layout.js';
import { wholeNumber } from './options.js';
import { howToGoOn, readPages } from './pages.js';
import type { Session } from './session.js';
import type { Terminal } from './terminal.js';

const path = '/admin/v1/alerts';

/** Each rule has fields of its own; those of all rules stand beside the rules. */
type Rules = Record<string, Record<string, unknown> | boolean | number | null>;

export function addAlertCommands(program: Command, session: Session): void {
  const alerts = program.command('alerts').description('Alerts: what is wrong, and whether operators can be told.');

  alerts
    .command('list')
    .description('Lists the alerts that are open, the newest first.')
    .addOption(
      new Option('--state <state>', 'Those that are open, or over.')
        .choices(['open', 'resolved', 'all'])
        .default('open'),
    )
    .option('--rule <rule>', 'Of that rule only.')
    .option('--limit <count>', 'At most so many.', wholeNumber(1, 10_000), 50)
    .option('--cursor <cursor>', 'Goes on where a list ended.')
    .action(async ({ limit, state, ...query }: { limit: number; state: string; rule?: string; cursor?: string }) => {
      const asked = { ...query, state: state === 'all' ? undefined : state };
      const page = await readPages<Alert>(session.client, path, 'alerts', asked, limit);
      const { items, nextCursor } = page;
      session.show({ alerts: items, nextCursor }, () => drawList(session.terminal, items));
      const more = howToGoOn(page);
      if (more) session.note(more);
    });

  alerts
    .command('test')
    .description('Sends a test to every operator now, and says what came of it.')
    .action(async () => {
      const answer = (await session.client.request('POST', `${path}/test`)) as AlertTest;
      session.show(answer, () => drawTest(session.terminal, answer));
      if (answer.results.length === 0 || answer.results.some(({ isSent }) => !isSent)) session.exit = exits.failed;
    });

  alerts
    .command('rules')
    .description('Shows when somebody is told of what.')
    .action(async () => {
      const rules = (await session.client.request('GET', '/admin/v1/alert-rules')) as Rules;
      session.show(rules, () => drawRules(session.terminal, rules));
    });
}

const drawList = (terminal: Terminal, alerts: readonly Alert[]): string =>
  alerts.length === 0
    ? 'No alerts.'
    : table(
        terminal,
        ['since', 'over', 'rule', 'subject', 'what', 'do'],
        alerts.map((each) => [
          moment(each.since),
          moment(each.resolvedAt),
          each.rule,
          each.subject,
          each.what,
          each.toDo,
        ]),
      );

const drawTest = (terminal: Terminal, { results }: AlertTest): string =>
  results.length === 0
    ? 'Nobody is told: neither ALERT_WEBHOOK_URL nor ALERT_MAIL_TO is set.'
    : table(
        terminal,
        ['to', 'address', 'sent', 'error'],
        results.map((each) => [each.channel, each.recipient, each.isSent ? 'yes' : 'no', each.error]),
      );

function drawRules(terminal: Terminal, rules: Rules): string {
  const drawn = Object.entries(rules).map(([name, rule]) => [name, textOf(rule)]);
  return fields(terminal, Object.fromEntries(drawn) as Record<string, string>);
}

function textOf(rule: Rules[string]): string {
  if (typeof rule !== 'object' || rule === null) return rule === null ? 'never' : String(rule);
  const { isEnabled, ...more } = rule;
  if (isEnabled === false) return 'off';
  const values = Object.entries(more).map(([name, value]) => `${name} ${String(value)}`);
  return values.length === 0 ? 'on' : values.join(', ');
}
