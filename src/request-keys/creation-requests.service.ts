import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '../config/config.module.js';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import { KeyReserved, reserveKey } from '../ledger/created-once.js';
import { findByKey } from '../ledger/find-by-key.js';
import type { CreatingOperation, OnceKey } from '../ledger/once-key.js';
import { SecretCipher } from '../secrets/secret-cipher.service.js';
import { hashPlace } from './hash-place.js';
import {
  fingerprintOf,
  IdempotencyKeyInFlight,
  IdempotencyKeyReused,
  IdempotencyKeyUnreadable,
  readIdempotencyKey,
  RequestsUnderWay,
} from './idempotency-key.js';

interface CreationRequest {
  /** Client id of the application that asks. */
  application: string;
  operation: CreatingOperation;
  /** All that is asked for, as it was checked. */
  input: unknown;
  /** Whether there is a secret in it. */
  hasSecret?: boolean;
}

export interface Exchange {
  request: FastifyRequest;
  reply: FastifyReply;
}

/** To be called in the transaction that creates the resource, before it does: then both happen, or neither. */
export type Reserve = (query: Query, id: string) => Promise<void>;

/** Of a request without a key. */
export const reserveNothing: Reserve = () => Promise.resolve();

type Created<T> = { kind: 'created'; created: T };

/** It was created before, by the same request, under this id. It may be gone since. */
type Before = { kind: 'replayed'; id: string };

/**
 * Requests of the admin API that create something: once, however often they are repeated under their `Idempotency-Key`.
 */
@Injectable()
export class CreationRequests {
  private readonly underWay = new RequestsUnderWay();

  constructor(
    private readonly postgres: Postgres,
    private readonly cipher: SecretCipher,
    private readonly config: Config,
  ) {}

  /**
   * Carries the request out, unless it was carried out before under its key: then the answer is marked as replayed.
   * @param create where it fails, the key stays free
   * @param find what was created before; where it fails, as it was deleted since, nothing is replayed
   * @throws {IdempotencyKeyInvalid}
   * @throws {IdempotencyKeyInFlight}
   * @throws {IdempotencyKeyReused}
   * @throws {IdempotencyKeyUnreadable}
   */
  async carryOut<T, Found>(
    { request, reply }: Exchange,
    asked: CreationRequest,
    create: (reserve: Reserve) => Promise<T>,
    find: (id: string) => Promise<Found>,
  ): Promise<Created<T> | { kind: 'replayed'; found: Found }> {
    const key = readIdempotencyKey(request);
    if (key === undefined) return { kind: 'created', created: await create(reserveNothing) };
    const done = await this.underKey(key, asked, create);
    if (done.kind === 'created') return done;
    const found = await find(done.id);
    void reply.header('idempotent-replayed', 'true');
    return { kind: 'replayed', found };
  }

  private underKey<T>(
    key: string,
    asked: CreationRequest,
    create: (reserve: Reserve) => Promise<T>,
  ): Promise<Created<T> | Before> {
    const once = this.onceKey(key, asked);
    return this.underWay.run(once, async () => {
      const before = await this.find(once);
      if (before) return before;
      try {
        const stored = asked.hasSecret ? this.withEncryptedHash(once) : once;
        return { kind: 'created', created: await create((query, id) => reserveKey(query, stored, id)) };
      } catch (error) {
        // Another process may have carried it out in the meantime: that may be why this one failed.
        const other = await this.findAfter(error, once);
        if (other) return other;
        throw error instanceof KeyReserved ? new IdempotencyKeyInFlight() : error;
      }
    });
  }

  private onceKey(key: string, { application, operation, input }: CreationRequest): OnceKey {
    const requestHash = fingerprintOf(JSON.stringify(input, byName));
    return { application, operation, key, requestHash, keepSeconds: this.config.settings.IDEMPOTENCY_KEY_TTL_SEC };
  }

  /**
   * Of a request with a secret, a reader of the database may know all the rest, and could try secrets until the hash is
   * the same.
   */
  private withEncryptedHash(once: OnceKey): OnceKey {
    return { ...once, requestHash: this.cipher.encrypt(once.requestHash ?? '', hashPlace(once)) };
  }

  /** Where nothing can be found because Postgres is away, `failure` says more, unless it is only that of the key. */
  private async findAfter(failure: unknown, once: OnceKey): Promise<Before | undefined> {
    try {
      return await this.find(once);
    } catch (error) {
      const saysMore = error instanceof IdempotencyKeyReused || error instanceof IdempotencyKeyUnreadable;
      throw saysMore || failure instanceof KeyReserved ? error : failure;
    }
  }

  /**
   * @throws {IdempotencyKeyReused}
   * @throws {IdempotencyKeyUnreadable}
   */
  private async find(once: OnceKey): Promise<Before | undefined> {
    const before = await findByKey(this.postgres, once);
    if (!before) return undefined;
    const hash = this.cipher.decryptIfPossible(before.requestHash ?? '', hashPlace(once));
    if (hash === undefined) throw new IdempotencyKeyUnreadable();
    if (hash !== once.requestHash) throw new IdempotencyKeyReused();
    return { kind: 'replayed', id: before.id };
  }
}

/** For `JSON.stringify`: the order in which the members of an object came says nothing (RFC 8259 §4). */
const byName = (_name: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value;
