import { useRef } from 'react';
import { mayBeDone } from '../api/problem.ts';
import { randomKey } from './random-key.ts';

/**
 * Sends what has to be carried out once. A request that may have been carried out, although its answer was lost, goes again as it was
 * and under the same key when the same is asked for again: then Heraut answers what became of it.
 */
export function useOnce() {
  const open = useRef<{ asked: string; request: unknown; key: string }>(undefined);
  /** @param asked tells whether it is the same, where something in the request changes from one try to the next */
  return async <Request, T>(
    request: Request,
    send: (request: Request, header: { 'Idempotency-Key': string }) => Promise<T>,
    asked = JSON.stringify(request),
  ): Promise<T> => {
    const sent = open.current?.asked === asked ? open.current : { asked, request, key: randomKey() };
    open.current = sent;
    try {
      const answer = await send(sent.request as Request, { 'Idempotency-Key': sent.key });
      open.current = undefined;
      return answer;
    } catch (error) {
      if (!mayBeDone(error)) open.current = undefined;
      throw error;
    }
  };
}
