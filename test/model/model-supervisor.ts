import type { SiblingListener, Siblings } from '../../src/supervision/siblings.js';

interface Message {
  /** Undefined: the supervisor chooses, when it passes the question on. */
  to: number | undefined;
  from: number;
  what: string;
  take: (listener: SiblingListener, to: number) => void;
}

/** Passes messages between the processes: in any order, late, or never. */
export class ModelSupervisor {
  private messages: Message[] = [];
  /** Messages with deliveries that arrived. */
  handedOver = 0;
  private readonly listeners = new Map<number, SiblingListener>();
  private readonly announced = new Map<number, { id: string; onEnded: (id: string) => void }>();

  get count(): number {
    return this.messages.length;
  }

  /** The others, as one process reaches them. */
  siblingsOf(process: number): Siblings {
    return {
      announce: (id, onEnded) => this.announced.set(process, { id, onEnded }),
      listen: (listener) => this.listeners.set(process, listener),
      askForCapacity: (question, deliveries) => {
        if (this.listeners.size < 2) return; // there is no other one to ask
        const take = (listener: SiblingListener, to: number) =>
          this.answer(to, process, question, listener.capacityFor(process, deliveries));
        this.messages.push({ to: undefined, from: process, what: 'question', take });
      },
      handOver: (to, message) => {
        if (!this.listeners.has(to)) return; // it has ended
        const take = (listener: SiblingListener) => {
          this.handedOver++;
          listener.handedOver(message);
        };
        this.messages.push({ to, from: process, what: 'deliveries', take });
      },
    };
  }

  /**
   * Takes the `pick`-th of the messages for processes that `mayGo`, and passes it on unless it `isLost`.
   * @returns a line about the message, none if there is no such one
   */
  pass(pick: number, mayGo: (process: number) => boolean, isLost = false): string[] {
    const routes = this.messages.flatMap((message) =>
      [...this.listeners.keys()]
        .filter((to) => mayGo(to) && to !== message.from && (message.to ?? to) === to)
        .map((to) => ({ message, to })),
    );
    const route = routes[pick % routes.length];
    if (!route) return [];
    const { message, to } = route;
    this.messages = this.messages.filter((other) => other !== message);
    if (!isLost) message.take(this.listeners.get(to)!, to);
    return [`${message.from} ${message.what} to ${to}${isLost ? ', lost' : ''}`];
  }

  /** Messages that it has sent may still arrive; those on the way to it are lost. The others are told. */
  end(process: number): void {
    this.listeners.delete(process);
    this.messages = this.messages.filter(({ to }) => to !== process);
    const ended = this.announced.get(process);
    this.announced.delete(process);
    if (!ended) return;
    for (const [to, { onEnded }] of this.announced)
      this.messages.push({ to, from: process, what: 'end', take: () => onEnded(ended.id) });
  }

  private answer(
    from: number,
    to: number,
    question: number,
    capacity: ReturnType<SiblingListener['capacityFor']>,
  ): void {
    if (!this.listeners.has(to)) return;
    this.messages.push({ to, from, what: 'answer', take: (listener) => listener.answered(question, from, capacity) });
  }
}
