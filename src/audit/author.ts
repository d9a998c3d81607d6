import { AsyncLocalStorage } from 'node:async_hooks';

/** The sender of the request that is being carried out. */
export interface Author {
  /** Client id of its application, or the name of the user who is signed in. */
  client: string;
  /** How that user signed in; not given: it is an application. */
  via?: string;
  /** IP address that it came from, as far as proxies are trusted; null: it left before its connection was accepted. */
  address: string | null;
  requestId: string;
}

const authors = new AsyncLocalStorage<Author | undefined>();
let requestsUnderWay = 0;

/** Runs `work` for a request: whatever it changes is noted as this author's. */
export async function actingFor<T>(author: Author, work: () => Promise<T>): Promise<T> {
  requestsUnderWay++;
  try {
    return await authors.run(author, work);
  } finally {
    // Before Node 24 each promise of the process costs more for as long as this is switched on. Publishing uses none of
    // it, and changes are rare; the next one switches it on again.
    if (--requestsUnderWay === 0) authors.disable();
  }
}

/**
 * Runs `work` as Heraut itself: something that a request has set going, a delivery for example, and that is no change
 * of its sender's.
 */
export const asNobody = <T>(work: () => Promise<T>): Promise<T> => authors.run(undefined, work);

/** Of applications and users, who may have the same names. */
export const callerIn = ({ client, via }: Author): string => (via === undefined ? client : userAsCaller(client));

/** No client id of a new application begins so. */
export const userAsCaller = (name: string): string => `user:${name}`;

/** Undefined where no request is being carried out: then Heraut itself acts. */
export const currentAuthor = (): Author | undefined => authors.getStore();
