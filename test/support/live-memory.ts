import { WebSocket } from 'undici';
import { eventually } from './eventually.js';
import type { HerautProcess } from './spawn-heraut.js';

/**
 * For the processes that `liveMemory` is to be asked of: a free port for Node's inspector, which is opened only then.
 */
export const measurable = { NODE_OPTIONS: '--inspect-port=127.0.0.1:0' };

/**
 * Bytes that processes hold in objects and buffers, all together, after a garbage collection. Unlike the size of a
 * process it does not depend on when the memory was given back to the system.
 */
export async function liveMemory(processes: HerautProcess[]): Promise<number> {
  const sizes = await Promise.all(processes.map(liveMemoryOf));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function liveMemoryOf(heraut: HerautProcess): Promise<number> {
  const addressIn = (line: string) => /^Debugger listening on (ws:\S+)/.exec(line)?.[1];
  if (!heraut.output.some(addressIn)) process.kill(heraut.pid!, 'SIGUSR1');
  const address = await eventually(() => heraut.output.findLast(addressIn), 'the inspector');
  const socket = new WebSocket(addressIn(address)!);
  try {
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = reject;
    });
    // Objects that the present event still refers to are gone at the second collection.
    await call(socket, 'HeapProfiler.collectGarbage');
    await call(socket, 'HeapProfiler.collectGarbage');
    const expression = 'process.memoryUsage().heapUsed + process.memoryUsage().external';
    const { result } = (await call(socket, 'Runtime.evaluate', { expression })) as { result: { value: number } };
    return result.value;
  } finally {
    socket.close();
  }
}

function call(socket: WebSocket, method: string, params = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    socket.onmessage = ({ data }) => resolve((JSON.parse(data as string) as { result: unknown }).result);
    socket.onclose = () => reject(new Error(`The process ended before it had answered ${method}.`));
    socket.send(JSON.stringify({ id: 1, method, params }));
  });
}
