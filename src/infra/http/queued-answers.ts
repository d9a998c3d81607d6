import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * An answer to a pipelined request has no socket until those before it were taken. Node tells `close` to the one that
 * has it when the connection goes, and nothing to the others: whatever is given back then would be lost. They are told
 * here. It costs nothing for a request that comes alone.
 */
export function closeQueuedAnswers(server: Server): void {
  const queuedOn = new WeakMap<Socket, Set<ServerResponse>>();
  const watch = ({ socket }: IncomingMessage, answer: ServerResponse) => {
    if (answer.socket) return;
    const queued = queuedOn.get(socket) ?? queueOf(socket);
    queuedOn.set(socket, queued);
    queued.add(answer);
    answer.once('socket', () => queued.delete(answer)); // Node tells it from then on
  };
  server.on('request', watch);
  server.on('checkExpectation', watch);
}

/** One listener, however many there are. */
function queueOf(socket: Socket): Set<ServerResponse> {
  const queued = new Set<ServerResponse>();
  socket.once('close', () => {
    for (const answer of queued) {
      answer.destroy();
      answer.emit('close');
    }
    queued.clear();
  });
  return queued;
}
