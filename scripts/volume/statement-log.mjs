// The times of the statements of Heraut, from PostgreSQL's own log: it knows the names of prepared statements, needs no
// extension, and counts the time in the server alone.
import { applicationName } from './database.mjs';

/** @typedef {{ name: string, ms: number }} Call */
/** @typedef {{ calls: Call[], cancelled: string[] }} Statements `cancelled`: by a time limit, before they were done */

/** A call that took less is not logged: to log each of them would cost more than some of them do. */
export const shortestLoggedMs = 2;
const cancelledCode = '57014';
const pieceBytes = 4 * 1024 * 1024;
const longestName = 60;

/**
 * Restarts the server with the log; before Heraut starts.
 * @param {import('./database.mjs').Database} database
 * @param {() => Promise<void>} restart
 */
export async function logStatements(database, restart) {
  const settings = {
    logging_collector: 'on',
    log_destination: 'jsonlog',
    log_directory: 'log',
    log_filename: 'statements',
    log_rotation_age: '0',
    log_rotation_size: '0',
    log_min_duration_statement: `${shortestLoggedMs}ms`,
    log_parameter_max_length: '0',
  };
  for (const [name, value] of Object.entries(settings)) await database.query(`ALTER SYSTEM SET ${name} = '${value}'`);
  await restart();
}

export class StatementLog {
  /** @type {Map<string, string>} */
  #names = new Map();

  /** @param {import('./database.mjs').Database} database */
  constructor(database) {
    this.database = database;
  }

  /** Where the log ends now. @returns {Promise<number>} */
  async end() {
    const [row] = await this.database.query("SELECT size::float8 FROM pg_stat_file(pg_current_logfile('jsonlog'))");
    return row.size;
  }

  /**
   * The calls of Heraut that ended since.
   * @param {number} from an `end()`
   * @returns {Promise<Statements>}
   */
  async since(from) {
    const to = await this.end();
    /** @type {Buffer[]} */
    const pieces = [];
    for (let at = from; at < to; at += pieceBytes) {
      const [row] = await this.database.query(
        "SELECT pg_read_binary_file(pg_current_logfile('jsonlog'), $1, $2) AS piece",
        [at, Math.min(pieceBytes, to - at)],
      );
      pieces.push(row.piece);
    }
    return readStatements(Buffer.concat(pieces).toString(), this.#names);
  }
}

/**
 * @param {string} log in PostgreSQL's JSON format, one object a line
 * @param {Map<string, string>} names of prepared statements by their text; those that are seen are added
 * @returns {Statements}
 */
export function readStatements(log, names) {
  /** @type {Statements} */
  const found = { calls: [], cancelled: [] };
  for (const line of log.split('\n')) {
    // A line that is being written just now has no end yet.
    if (!line.endsWith('}')) continue;
    /** @type {{ application_name?: string, backend_type?: string, state_code?: string, message: string, statement?: string }} */
    const { application_name, backend_type, state_code, message, statement = '' } = JSON.parse(line);
    if (application_name === applicationName || backend_type !== 'client backend') continue;
    if (state_code === cancelledCode) found.cancelled.push(names.get(statement) ?? shortened(statement));
    // One about the deliveries of a day has its number behind its name (src/ledger/per-day.ts).
    const call = /^duration: ([\d.]+) ms {2}(?:(parse|bind|execute) (\S+?)(?: \d+)?|statement): (.*)$/s.exec(message);
    if (!call) continue;
    const [, ms, step, prepared, text = ''] = call;
    const name = prepared === undefined || prepared === '<unnamed>' ? shortened(text) : prepared;
    if (name === prepared) names.set(text, name);
    // Postgres plans a statement while it binds the values.
    const suffix = { parse: ' (parse)', bind: ' (plan)' }[step ?? ''] ?? '';
    found.calls.push({ name: `${name}${suffix}`, ms: Number(ms) });
  }
  return found;
}

/** @param {string} text */
function shortened(text) {
  const line = text.trim().replaceAll(/\s+/g, ' ');
  return line.length > longestName ? `${line.slice(0, longestName)}…` : line;
}
