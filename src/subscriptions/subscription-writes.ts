import { Any, IsNull, type EntityManager } from 'typeorm';
import { AuditLog, type Change } from '../audit/audit-log.js';
import { timeIn } from '../infra/postgres/time-in.js';
import { noteOrderEndings, withdrawOrderEndings } from '../ledger/end-of-order.js';
import { noteEndings, withdrawEndings, type Ending } from '../ledger/end-of-subscription.js';
import { lookNow, noteResumed } from '../ledger/held-subscriptions.js';
import { eraseSigningKeysOf } from './signing-key-rows.js';
import { bytesInMemory } from './bytes-in-memory.js';
import { insertSubscriptions, updateSubscriptions, type SubscriptionColumns } from './subscription-rows.js';
import { SubscriptionEntity } from './subscription.entity.js';

/**
 * A subscription may have megabytes of filters, and a statement with hundreds of such would not end within its time
 * limit.
 */
const mostBytes = 2 ** 22;

/**
 * The rows that changes of subscriptions write, within one change of the catalogue: collected, and written with one
 * statement for each kind, however many subscriptions it is about. Nothing else changes them meanwhile, so that they
 * are known as they will be.
 */
export class SubscriptionWrites {
  /** As they will be; of those that were read together, also the ones that are not there. */
  private readonly known = new Map<string, SubscriptionEntity | undefined>();
  private readonly created = new Map<string, SubscriptionEntity>();
  private readonly changed = new Map<string, Partial<SubscriptionColumns>>();
  /** By subscription; undefined: none any more. */
  private readonly endings = new Map<string, Ending | undefined>();
  /** By subscription: whether its order is to end. */
  private readonly orderEndings = new Map<string, boolean>();
  /** By subscription: whether it was paused. */
  private readonly looks = new Map<string, boolean>();
  private readonly withoutKeys = new Set<string>();
  private readonly notes: Change[] = [];
  private time: Promise<Date> | undefined;
  private bytes = 0;

  constructor(
    readonly manager: EntityManager,
    readonly version: number,
  ) {}

  /** Reads those that are going to be changed. */
  async read(ids: readonly string[]): Promise<void> {
    const found = await this.manager.findBy(SubscriptionEntity, { id: Any([...ids]), deletedAt: IsNull() });
    for (const id of ids) this.known.set(id, undefined);
    for (const entity of found) this.known.set(entity.id, entity);
  }

  /** As it will be. Undefined: it does not exist, or is deleted. */
  async find(id: string): Promise<SubscriptionEntity | undefined> {
    if (!this.known.has(id)) await this.read([id]);
    const known = this.known.get(id);
    return known?.deletedAt === null ? known : undefined;
  }

  /** No more should be collected before this is written. */
  get isFull(): boolean {
    return this.bytes > mostBytes;
  }

  create(entity: SubscriptionEntity): void {
    this.bytes += bytesInMemory({ ...entity, signingKeys: 0 });
    this.created.set(entity.id, entity);
    this.known.set(entity.id, entity);
  }

  /** @param after all of it; `changed` are the columns to write, of which an undefined one stays as it is */
  change(after: SubscriptionEntity, changed: Partial<SubscriptionColumns>): void {
    this.bytes += bytesInMemory({ ...after, signingKeys: 0 });
    this.known.set(after.id, after);
    if (this.created.has(after.id)) this.created.set(after.id, after);
    else this.changed.set(after.id, { ...this.changed.get(after.id), ...changed });
  }

  end(id: string, state: Ending): void {
    this.endings.set(id, state);
  }

  goOn(id: string): void {
    this.endings.set(id, undefined);
  }

  endOrder(id: string): void {
    this.orderEndings.set(id, true);
  }

  keepOrder(id: string): void {
    this.orderEndings.set(id, false);
  }

  lookNow(id: string): void {
    this.looks.set(id, this.looks.get(id) ?? false);
  }

  resume(id: string): void {
    this.looks.set(id, true);
  }

  eraseSigningKeys(id: string): void {
    this.withoutKeys.add(id);
  }

  note(change: Change): void {
    this.notes.push(change);
  }

  /** The time of what is written together. */
  now(): Promise<Date> {
    this.time ??= timeIn(this.manager);
    return this.time;
  }

  async write(): Promise<void> {
    const { manager, version } = this;
    await insertSubscriptions(manager, version, [...this.created.values()]);
    await updateSubscriptions(
      manager,
      version,
      [...this.changed].map(([id, changed]) => ({ id, changed })),
    );
    for (const state of ['cancelled', 'failed'] as const)
      await noteEndings(manager, withValue(this.endings, state), state, version);
    await withdrawEndings(manager, withValue(this.endings, undefined));
    await noteOrderEndings(manager, withValue(this.orderEndings, true), version);
    await withdrawOrderEndings(manager, withValue(this.orderEndings, false));
    await lookNow(manager, withValue(this.looks, false));
    await noteResumed(manager, withValue(this.looks, true));
    await eraseSigningKeysOf(manager, [...this.withoutKeys]);
    await AuditLog.noteAll(manager, this.notes);
    this.clear();
  }

  /** From now on subscriptions are read anew. */
  forget(): void {
    this.known.clear();
  }

  private clear(): void {
    for (const collected of [this.created, this.changed, this.endings, this.orderEndings, this.looks, this.withoutKeys])
      collected.clear();
    this.notes.length = 0;
    this.time = undefined;
    this.bytes = 0;
  }
}

const withValue = <Value>(map: ReadonlyMap<string, Value>, wanted: Value): string[] =>
  [...map].filter(([, value]) => value === wanted).map(([id]) => id);
