import { smuggledName } from './smuggling.mjs';

/**
 * @typedef {(text: string, values?: unknown[]) => Promise<any[]>} Sql
 * @typedef {object} Outcome of a request
 * @property {number} nr
 * @property {string} requestId that it sent; it may be none
 * @property {boolean} isDone whether it was answered with a success
 * @property {string | undefined} notificationId that the answer names
 */

/** Compares what was answered with what is stored: a request that was refused has written nothing. */
export class Accounts {
  #lastEntry = '0';
  #version = 0;
  #since = 0;

  /** @param {Sql} sql */
  constructor(sql) {
    this.sql = sql;
  }

  /** Before requests are sent. */
  async open() {
    const [row] = await this.sql(
      `SELECT version, (SELECT coalesce(max(nr), 0) FROM audit_entry) AS last,
         (extract(epoch FROM now()) * 1000)::bigint AS now_ms FROM catalogue`,
    );
    this.#version = Number(row.version);
    this.#lastEntry = row.last;
    this.#since = Number(row.now_ms);
  }

  /**
   * After they are answered, all of them.
   * @param {readonly Outcome[]} outcomes
   * @returns {Promise<string[]>} faults
   */
  async compare(outcomes) {
    const wrong = [];
    const entries = await this.sql('SELECT nr, request_id, action FROM audit_entry WHERE nr > $1', [this.#lastEntry]);
    const refused = new Map(outcomes.map((outcome) => [outcome.requestId, outcome.nr]));
    // Several may have sent the same id.
    for (const { requestId, isDone } of outcomes) if (isDone) refused.delete(requestId);
    for (const { request_id: id, action } of entries)
      if (refused.has(id)) wrong.push(`request ${refused.get(id)} was refused, but did ${action}`);
    const done = outcomes.filter(({ isDone }) => isDone).length;
    // One may change much, by a configuration; what replays and erasures do later is noted as the system's own.
    const changing = new Set(entries.map((entry) => entry.request_id).filter((id) => id !== null)).size;
    if (changing > done)
      wrong.push(`${changing} requests changed something, of ${done} that were answered with a success`);

    const [{ version }] = await this.sql('SELECT version FROM catalogue');
    const changes = Number(version) - this.#version;
    if (changes > entries.length)
      wrong.push(`${changes} changes of the catalogue, of which ${entries.length} were noted`);

    // A UUIDv7 begins with its milliseconds.
    const first = `${this.#since
      .toString(16)
      .padStart(12, '0')
      .replace(/(.{8})/, '$1-')}-0000-0000-000000000000`;
    const answered = new Set(outcomes.map(({ notificationId }) => notificationId));
    const stored = await this.sql('SELECT id FROM notification WHERE id >= $1', [first]);
    for (const { id } of stored)
      if (!answered.has(id)) wrong.push(`notification ${id} is stored, but no answer names it`);
    const lone = await this.sql(
      `SELECT notification_id FROM delivery d WHERE notification_id >= $1
         AND NOT EXISTS (SELECT FROM notification n WHERE n.id = d.notification_id)`,
      [first],
    );
    if (lone.length > 0) wrong.push(`${lone.length} deliveries of no notification`);

    const smuggled = await this.sql('SELECT name FROM channel WHERE starts_with(name, $1)', [smuggledName]);
    for (const { name } of smuggled) wrong.push(`a hidden request was carried out: ${name}`);
    await this.open();
    return wrong;
  }
}
