import { isProblem, mayBeDone } from '../api/problem.ts';
import { randomKey } from './random-key.ts';

type Send<Request, T> = (request: Request, header: { 'Idempotency-Key': string }) => Promise<T>;

/**
 * Sends what has to be carried out once. A request that may have been carried out, although its answer was lost, goes
 * again as it was and under the same key when the same is asked for again: then Heraut answers what became of it.
 */
export class Once {
  private open: { asked: string; request: unknown; key: string; isInDoubt: boolean } | undefined;

  /** @param asked tells whether it is the same, where something in the request changes from one try to the next */
  async send<Request, T>(request: Request, send: Send<Request, T>, asked = JSON.stringify(request)): Promise<T> {
    const sent = this.open?.asked === asked ? this.open : { asked, request, key: randomKey(), isInDoubt: false };
    this.open = sent;
    try {
      const answer = await send(sent.request as Request, { 'Idempotency-Key': sent.key });
      this.settle(sent);
      return answer;
    } catch (error) {
      sent.isInDoubt ||= mayBeDone(error);
      if (!sent.isInDoubt || isSettled(error)) this.settle(sent);
      throw error;
    }
  }

  /** Something else may have been asked for meanwhile, and be under way. */
  private settle(sent: Once['open']): void {
    if (this.open === sent) this.open = undefined;
  }
}

/**
 * Said only by those who have looked for the key. An error that refuses a later try before that, since the session has
 * ended for example, says nothing of the earlier one.
 */
const isSettled = (error: unknown): boolean =>
  isProblem(error, 'selection-not-confirmed') || isProblem(error, 'deleted-meanwhile');
