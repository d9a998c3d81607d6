import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { TooManyRequestsProblem, UnavailableProblem } from '../infra/http/problem.js';
import { Catalogue } from './catalogue.service.js';
import { bytesOf, type Long } from './long-json.js';

type ListMaker<Item> = () => Long<Item> | Promise<Long<Item>>;

/** Of one edition, unless more are to be made: callers use one base URL, as a rule, and one of the two APIs. */
const mostKept = 4;
const keptUnusedMs = 10_000;
/**
 * To be made. Where any `Host` is allowed, a caller chooses how many base URLs there are, and each list takes up to
 * half a second.
 */
const mostInLine = 8;
/** Of one caller: the places of others are left to others. */
const mostOfOne = 2;
const retryAfterSeconds = 5;
/** As many long ones, whose lengths are known from when they were made last. */
const mostLengths = 16;
/** Of what may be lent: shorter ones cost little to make, and nearly always have room. */
const shortPart = 1 / 256;

interface Kept {
  /** Of the catalogue when its making began. Until then it serves everybody who asks. */
  edition: number | undefined;
  /** Until then. */
  askers: FastifyReply['raw'][];
  body: Promise<Buffer>;
  /** Once it is made. */
  bytes?: Buffer;
}

/**
 * Long answers of what the catalogue has in memory: each is made once for all who ask for it while nothing changes, in
 * parts, and all are answered with the same bytes (docs/decisions/0089).
 */
@Injectable()
export class KeptAnswers implements OnModuleDestroy {
  /** Of different lists together that callers have not taken yet, each of which may take a minute to do so. */
  readonly mostBytesLent = 256 * 1024 * 1024;
  /** Of lists that are kept in case somebody asks again, and that nobody is being sent. */
  readonly mostBytesKept = 64 * 1024 * 1024;
  /** By what the list depends on beside the catalogue, the one asked for last at the end. */
  private readonly kept = new Map<string, Kept>();
  private readonly lent = new Map<Buffer, number>();
  /** When they were made last, by the keys of lists. */
  private readonly lengths = new Map<string, number>();
  private lastMade: Promise<unknown> = Promise.resolve();
  /** By the caller who asked first. */
  private readonly inLine: string[] = [];
  private unused: NodeJS.Timeout | undefined;

  constructor(private readonly catalogue: Catalogue) {}

  onModuleDestroy(): void {
    clearTimeout(this.unused);
  }

  /**
   * The body of the answer, with every change that was committed before the call.
   * @param key of the list, and of all that it depends on beside the catalogue
   * @param caller its id
   * @throws {TooManyRequestsProblem} while too many that this caller asked for are to be made
   * @throws {UnavailableProblem} while too many others are to be made, or have not been taken
   */
  async answer<Item>(key: string, caller: string, reply: FastifyReply, list: ListMaker<Item>): Promise<Buffer> {
    await this.catalogue.refresh();
    const body = await this.find(key, caller, reply, list);
    // Once it is lent to all who waited for it: the first of them may be gone.
    setImmediate(() => this.keepNoMore());
    this.lend(body, reply);
    void reply.type('application/json; charset=utf-8');
    return body;
  }

  private find<Item>(key: string, caller: string, { raw }: FastifyReply, list: ListMaker<Item>): Promise<Buffer> {
    const { edition } = this.catalogue;
    this.keepAWhile();
    const known = this.kept.get(key);
    if (known && isOf(edition, known)) {
      this.kept.delete(key);
      this.kept.set(key, known);
      if (known.edition === undefined) known.askers.push(raw);
      return known.body;
    }
    if (this.inLine.filter((each) => each === caller).length >= mostOfOne)
      throw new TooManyRequestsProblem(retryAfterSeconds);
    if (this.inLine.length >= mostInLine)
      throw new UnavailableProblem('Lists that others asked for have not been made yet.', retryAfterSeconds);
    this.checkRoom(this.lengths.get(key) ?? 0); // rather than after its making
    for (const [old, each] of this.kept) if (!isOf(edition, each)) this.kept.delete(old);
    // One that is to be made stays: whoever asks for it joins it, and does not have it made again.
    for (const [old, { bytes }] of this.kept) if (bytes && this.kept.size >= mostKept) this.kept.delete(old);
    this.inLine.push(caller);
    const making: Kept = {
      edition: undefined,
      askers: [raw],
      body: this.lastMade
        .then(() => this.make(key, making, list))
        .finally(() => this.inLine.splice(this.inLine.indexOf(caller), 1)),
    };
    this.kept.set(key, making);
    this.lastMade = making.body.then(
      (bytes) => {
        making.bytes = bytes;
        this.keepAWhile();
        if (bytes.length > 0) this.noteLength(key, bytes.length);
      },
      () => {
        if (this.kept.get(key) === making) this.kept.delete(key);
      },
    );
    return making.body;
  }

  private async make<Item>(key: string, making: Kept, list: ListMaker<Item>): Promise<Buffer> {
    making.edition = this.catalogue.edition;
    const isWanted = making.askers.some(({ destroyed }) => !destroyed);
    making.askers = [];
    if (isWanted) return bytesOf(await list());
    if (this.kept.get(key) === making) this.kept.delete(key);
    return Buffer.of(); // which nobody is sent
  }

  /** A list that is made or sent stays, however long that takes. */
  private keepAWhile(): void {
    clearTimeout(this.unused);
    this.unused = setTimeout(() => {
      for (const [key] of this.idle()) this.kept.delete(key);
    }, keptUnusedMs).unref();
  }

  private idle(): [string, Kept][] {
    return [...this.kept].filter(([, { bytes }]) => bytes && !this.lent.has(bytes));
  }

  /**
   * Those go first that nobody asked for the longest. Those that are being sent cost nothing more, and are there for
   * the next who asks.
   */
  private keepNoMore(): void {
    const idle = this.idle();
    let sum = idle.reduce((total, [, { bytes }]) => total + bytes!.length, 0);
    for (const [key, { bytes }] of idle) {
      if (sum <= this.mostBytesKept) return;
      this.kept.delete(key);
      sum -= bytes!.length;
    }
  }

  private noteLength(key: string, length: number): void {
    this.lengths.delete(key);
    if (length < this.mostBytesLent * shortPart) return;
    this.lengths.set(key, length);
    const [oldest] = this.lengths.keys();
    if (this.lengths.size > mostLengths) this.lengths.delete(oldest!);
  }

  private checkRoom(length: number): void {
    const bytes = [...this.lent.keys()].reduce((sum, each) => sum + each.length, 0);
    if (bytes > 0 && bytes + length > this.mostBytesLent)
      throw new UnavailableProblem('Lists that others asked for have not been taken yet.', retryAfterSeconds);
  }

  private lend(body: Buffer, { raw }: FastifyReply): void {
    if (raw.destroyed) return; // its caller is gone
    const before = this.lent.get(body);
    if (before === undefined) this.checkRoom(body.length);
    this.lent.set(body, (before ?? 0) + 1);
    raw.once('close', () => {
      const left = this.lent.get(body)! - 1;
      if (left > 0) this.lent.set(body, left);
      else {
        this.lent.delete(body);
        this.keepNoMore();
        this.keepAWhile();
      }
    });
  }
}

const isOf = (edition: number, kept: Kept): boolean => kept.edition === undefined || kept.edition === edition;
