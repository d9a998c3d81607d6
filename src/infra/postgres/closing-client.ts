import pg from 'pg';
import { markNotConnected, orMarkNotConnected } from './not-connected.js';
import { isReadOnly, isUnanswered } from './postgres-errors.js';

/**
 * A connection that closes its socket when a statement gets no answer in time. pg would keep it: whatever the pool ran
 * on it next would wait behind that statement. The server ends a statement at its own, shorter limit, so one without an
 * answer is on a server, or behind a network, that is frozen; whether it will run cannot be known.
 *
 * And one that can only be read. Behind a proxy it may lead to a server that is a standby by now, and it keeps the
 * defaults of the time when it was opened: what the pool runs on it would fail, for up to an hour after new ones work
 * again.
 *
 * An error of its making is marked as such.
 */
export class ClosingClient extends pg.Client {
  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | void {
    if (!callback) return orMarkNotConnected(super.connect());
    // As the pool calls it.
    super.connect((error: Error) => {
      markNotConnected(error);
      callback(error);
    });
  }

  // pg declares nine ways to call it. TypeORM and Postgres use those that return a promise.
  override query(...given: never[]): never {
    const answer: unknown = super.query(...(given as [never]));
    if (answer instanceof Promise) {
      answer.catch((error: unknown) => {
        if (isUnanswered(error) || isReadOnly(error)) void this.end();
      });
    }
    return answer as never;
  }
}
