import { CannotConnect } from '../cannot-connect.js';

/** Something of a server, a database or a role that Heraut cannot work with, and what an operator does about it. */
export interface Unfit {
  found: string;
  advice: string;
}

/** On one connection, for which no parameters are bound. */
export type Ask = <Row>(text: string) => Promise<Row[]>;

/** @throws {CannotConnect} */
export async function refuseUnfit(found: Promise<Unfit | undefined>): Promise<void> {
  const unfit = await found;
  if (unfit) throw new CannotConnect('Postgres', new Error(unfit.found), unfit.advice);
}

/**
 * In any other encoding than UTF-8 there are characters that cannot be stored. A notification with one would be
 * refused, and of a delivery whose receiver answers with one the end could never be written down.
 */
export async function encodingUnfit(ask: Ask): Promise<Unfit | undefined> {
  const [row] = await ask<{ encoding: string }>(`SELECT current_setting('server_encoding') AS encoding`);
  if (row!.encoding === 'UTF8') return undefined;
  return {
    found: `its database has the encoding ${row!.encoding}`,
    advice:
      'Heraut needs UTF8, and a database keeps the encoding that it was made with: createdb --encoding=UTF8 --template=template0, and restore a pg_dump of this one into it.',
  };
}
