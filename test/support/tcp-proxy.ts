import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A way to a server that a test can cut, hold up, or put its own bytes into. */
export class TcpProxy {
  private readonly pairs = new Set<{ client: Socket; server: Socket }>();
  private listener: Server | undefined;
  private isHeldUp = false;
  private holdsUpFrom: ((bytes: Buffer) => boolean) | undefined;
  private port = 0;
  /** Gets the bytes of a client before they go on to the server, and the socket that they go on through. */
  onClientData: ((bytes: Buffer, server: Socket) => void) | undefined;

  private constructor(private readonly target: URL) {}

  static async start(serverUrl: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(serverUrl));
    await proxy.restore();
    return proxy;
  }

  /** The server's URL, by way of the proxy. */
  get url(): string {
    const url = new URL(this.target);
    url.port = String(this.port);
    return url.href;
  }

  get openConnections(): number {
    return this.pairs.size;
  }

  /** Resets every connection, and refuses new ones until `restore`. */
  async cut(): Promise<void> {
    const listener = this.listener;
    this.listener = undefined;
    for (const socket of [...this.pairs].flatMap(({ client, server }) => [client, server])) {
      // One that is shutting down cannot be reset: Node would neither close it nor ever come to an end itself
      // (TCPWrap::Reset).
      if (socket.writableEnded) socket.destroy();
      else socket.resetAndDestroy();
    }
    if (!listener) return;
    listener.close();
    await once(listener, 'close');
  }

  async restore(): Promise<void> {
    this.isHeldUp = false;
    this.holdsUpFrom = undefined;
    if (this.listener) return;
    const listener = createServer((client) => this.join(client));
    listener.listen(this.port, '127.0.0.1');
    await once(listener, 'listening');
    this.port = (listener.address() as AddressInfo).port;
    this.listener = listener;
  }

  /** From now on nothing passes from the clients to the server, until `letGo`. New connections hang as well. */
  holdUp(): void {
    this.isHeldUp = true;
    for (const { client } of this.pairs) client.pause();
  }

  /**
   * From the first bytes of a client on for which that is true, nothing of it passes to the server, until `letGo`. The
   * others go on.
   */
  holdUpFrom(isFirst: (bytes: Buffer) => boolean): void {
    this.holdsUpFrom = isFirst;
  }

  letGo(): void {
    this.isHeldUp = false;
    this.holdsUpFrom = undefined;
    for (const { client } of this.pairs) client.resume();
  }

  /** To every client, as if the server had said it. Only between two messages of the server's. */
  say(bytes: Buffer): void {
    for (const { client } of this.pairs) client.write(bytes);
  }

  private join(client: Socket): void {
    const server = connect({ host: this.target.hostname, port: Number(this.target.port) });
    const pair = { client, server };
    this.pairs.add(pair);
    client.on('data', (bytes) => {
      if (this.holdsUpFrom?.(bytes)) {
        client.pause();
        client.unshift(bytes);
        return;
      }
      this.onClientData?.(bytes, server);
      server.write(bytes);
    });
    server.on('data', (bytes) => client.write(bytes));
    if (this.isHeldUp) client.pause();
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => {}); // `close` follows
      one.on('end', () => other.end());
      one.on('close', () => {
        this.pairs.delete(pair);
        other.destroy();
      });
    }
  }
}
