export interface ServerSentEvent {
  id: string | undefined;
  event: string;
  data: string;
}

/**
 * Reads a stream of server-sent events, however it is cut into pieces. Lines end in `\n` or `\r\n`; comments are passed
 * over. The console is built with it too, so it imports nothing.
 */
export class EventParser {
  private rest = '';
  private id: string | undefined;
  private event = '';
  private data: string[] = [];
  /**
   * Where a lost connection goes on: of the last event that was complete, or of a position without one, such as comes
   * while nothing happens.
   */
  lastId: string | undefined;
  /** Milliseconds after which the server wants a lost connection made again. */
  retryMs: number | undefined;

  /** @returns the events that are complete with this piece */
  push(piece: string): ServerSentEvent[] {
    const lines = (this.rest + piece).split('\n');
    this.rest = lines.pop()!;
    return lines.flatMap((line) => this.line(line.endsWith('\r') ? line.slice(0, -1) : line));
  }

  private line(line: string): ServerSentEvent[] {
    if (line === '') return this.dispatch();
    const colon = line.indexOf(':');
    const [field, value] = colon === -1 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
    if (field === 'id') this.id = value;
    else if (field === 'event') this.event = value;
    else if (field === 'data') this.data.push(value);
    else if (field === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
    return [];
  }

  private dispatch(): ServerSentEvent[] {
    const complete = { id: this.id, event: this.event || 'message', data: this.data.join('\n') };
    this.lastId = this.id ?? this.lastId;
    [this.id, this.event, this.data] = [undefined, '', []];
    return complete.data === '' ? [] : [complete];
  }
}
