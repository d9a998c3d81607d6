import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * A server that does what it is told with each whole request, and records the requests. `count` is of the requests that
 * came over that connection, from 1.
 */
export class RawReceiver {
  private constructor(
    private readonly server: Server,
    readonly sockets: Socket[],
    readonly received: string[],
  ) {}

  static async start(say: (socket: Socket, count: number) => void, host = '127.0.0.1'): Promise<RawReceiver> {
    const [sockets, received]: [Socket[], string[]] = [[], []];
    const server = createServer({ noDelay: true }, (socket) => {
      sockets.push(socket);
      let text = '';
      let count = 0;
      socket.on('error', () => {});
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1');
        if (!text.includes('\r\n\r\n{}')) return;
        received.push(text);
        text = '';
        count++;
        say(socket, count);
      });
    });
    server.listen(0, host);
    await once(server, 'listening');
    return new RawReceiver(server, sockets, received);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }
}
