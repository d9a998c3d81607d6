import { Agent, Client, Pool, type Dispatcher } from 'undici';
import type { Connector } from '../outbound/connector.js';
import type { Call } from './call.js';
import { callIsOver, Connection, isClosed } from './connection.js';
import type { ParsedUrl } from './parsed-url.js';
import type { WebhookRequest } from './webhook-client.js';

/**
 * Why the answer could not be had this way, although it may be had on a connection of the call's own. `closed`: the
 * connection had been kept open after another call, and was closed before a byte of an answer came. `informational`:
 * before its answer the receiver sent a `100 Continue`, which undici takes for an error (in 7.30, client-h1.js).
 */
export type Lost = 'closed' | 'informational';

/**
 * A name is looked up for a new connection only: a receiver that has moved, while its old address still answers, is
 * found after this at the latest.
 */
const longestUseMs = 60_000;

/** Calls over connections that stay open for the next one. */
export class KeptConnections {
  private readonly agent: Agent;

  /**
   * @param useMs how long a connection is used at most, and half as long at least, so that those which were made
   * together do not all end together
   */
  constructor(connector: Connector, useMs = longestUseMs) {
    const connectionTo = (origin: URL, options: object) =>
      new KeptConnection(origin, options, new Connection(connector), useMs * (0.5 + Math.random() / 2));
    this.agent = new Agent({
      // As many connections as there are calls: windows and MAX_IN_FLIGHT bound them, and no call waits behind another.
      connections: null,
      pipelining: 1,
      // Each call has a deadline of its own, for all of it.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: connector,
      factory: (origin, options) => new Pool(origin, { ...options, factory: connectionTo }),
    });
  }

  /** @param onLost says that the answer of the call is lost; otherwise the call itself is told what becomes of it */
  send(call: Call, { origin, path }: ParsedUrl, request: WebhookRequest, onLost: (lost: Lost) => void): void {
    const handler = new Handler(call, onLost);
    const { headers, body } = request;
    const options: CallOptions = { origin, path, method: 'POST', headers, body, handler };
    try {
      this.agent.dispatch(options, handler);
    } catch (error) {
      call.failWith(error as Error); // e.g. a header value HTTP does not allow
    }
  }

  /** Takes no more calls; those that are open end as they would. */
  async finish(): Promise<void> {
    await this.agent.close();
  }

  async close(): Promise<void> {
    await this.agent.destroy();
  }
}

interface CallOptions extends Agent.DispatchOptions {
  handler: Handler;
}

/** undici tells a handler nothing of the connection, so the connection tells it. */
class KeptConnection extends Client {
  constructor(
    origin: URL,
    options: object,
    private readonly connection: Connection,
    private readonly useMs: number,
  ) {
    super(origin, { ...options, connect: connection.connect });
  }

  override dispatch(options: CallOptions, handler: Dispatcher.DispatchHandler): boolean {
    options.handler.carriedBy(this.connection);
    // Its last call says so to the receiver (`Connection: close`); the next one makes a new connection.
    if (this.isUsedUp()) options.reset = true;
    return super.dispatch(options, handler);
  }

  private isUsedUp(): boolean {
    const { madeAt } = this.connection;
    // One that the receiver has closed is made anew for this call.
    return madeAt !== null && performance.now() - madeAt >= this.useMs && this.stats.connected;
  }
}

class Handler implements Dispatcher.DispatchHandler {
  private connection: Connection | undefined;
  /** Undefined: nothing of the call was written yet. */
  private isKept: boolean | undefined;

  constructor(
    private readonly call: Call,
    private readonly onLost: (lost: Lost) => void,
  ) {}

  carriedBy(connection: Connection): void {
    this.connection = connection;
    this.call.carriedBy(connection, () => connection.stopConnecting());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Its time was up before there was a connection: nothing may leave any more.
    if (this.call.isOver) return controller.abort(callIsOver);
    const connection = this.connection!;
    this.isKept = connection.calls++ > 0;
    // Not by an abort of the request: after that undici connects once more, for nothing.
    this.call.begin(this.isKept, () => connection.cut());
  }

  onResponseStarted(): void {
    this.call.firstByte();
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Parameters<Call['head']>[1]): void {
    if (status >= 200) this.call.head(status, headers);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.call.data(chunk);
  }

  onResponseEnd(): void {
    this.call.complete();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (this.call.isOver) return;
    const lost = this.lostBy(error);
    if (lost) this.onLost(lost);
    else this.call.failWith(error);
  }

  private lostBy(error: Error & { code?: unknown }): Lost | undefined {
    if (error.code === 'UND_ERR_SOCKET' && error.message === 'bad response') return 'informational';
    // Before undici writes to a kept connection, it lets one turn of the loop pass, in which that may be found reset.
    // One that is only being made has begun no call.
    const isKept = this.isKept ?? this.connection!.calls > 0;
    return isKept && isClosed(error) && !this.call.hasFirstByte ? 'closed' : undefined;
  }
}
