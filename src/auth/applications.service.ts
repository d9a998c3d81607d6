import { Injectable } from '@nestjs/common';
import { randomBytes, randomUUID } from 'node:crypto';
import { IsNull, type EntityManager } from 'typeorm';
import { AuditLog } from '../audit/audit-log.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { IdempotencyKeyReused, RequestsUnderWay } from '../idempotency/idempotency-key.js';
import { NotFoundProblem, ValidationProblem } from '../infra/http/problem.js';
import { findCreated, KeyReserved, reserveKey } from '../ledger/created-once.js';
import type { OnceKey } from '../ledger/once-key.js';
import { isUniqueViolation } from '../infra/postgres/postgres-errors.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { SecretCipher } from '../secrets/secret-cipher.service.js';
import { secretPlace } from './application.js';
import { ApplicationEntity } from './application.entity.js';

/** An application as it may be shown: without its secret. */
export type ShownApplication = Pick<
  ApplicationEntity,
  'id' | 'clientId' | 'label' | 'scopes' | 'isSuperuser' | 'alertEmail' | 'createdAt'
>;

export interface NewApplication {
  label: string;
  clientId: string;
  scopes: string[];
  isSuperuser: boolean;
  alertEmail?: string | null;
  /** None: one is made. */
  secret?: string;
}

export interface ApplicationChanges {
  label?: string;
  scopes?: string[];
  isSuperuser?: boolean;
  alertEmail?: string | null;
  secret?: string;
}

export type Created =
  | { kind: 'created'; application: ShownApplication; secret: string }
  /** It was created before, by the same request. Its secret is not shown again. */
  | { kind: 'replayed'; application: ShownApplication };

const shown = ({
  id,
  clientId,
  label,
  scopes,
  isSuperuser,
  alertEmail,
  createdAt,
}: ApplicationEntity): ShownApplication => ({
  id,
  clientId,
  label,
  scopes,
  isSuperuser,
  alertEmail,
  createdAt,
});

const newSecret = (): string => randomBytes(32).toString('base64url');

const clientIdTaken = (): ValidationProblem =>
  new ValidationProblem([{ name: 'clientId', code: 'unique', reason: 'There is an application with this client id.' }]);

@Injectable()
export class ApplicationsService {
  private readonly underWay = new RequestsUnderWay();

  constructor(
    private readonly catalogue: Catalogue,
    private readonly postgres: Postgres,
    private readonly cipher: SecretCipher,
    private readonly config: Config,
  ) {}

  async list(): Promise<ShownApplication[]> {
    const applications = this.postgres.dataSource.getRepository(ApplicationEntity);
    const found = await applications.find({ where: { deletedAt: IsNull() }, order: { clientId: 'ASC' } });
    return found.map(shown);
  }

  async get(id: string): Promise<ShownApplication> {
    return shown(await findOrFail(this.postgres.dataSource.manager, id));
  }

  /**
   * `secret` is only ever returned here: a request that is repeated under its key does not get it again.
   * @throws {ValidationProblem} code `unique` when there is an application with this client id
   * @throws {IdempotencyKeyInFlight}
   * @throws {IdempotencyKeyReused}
   */
  async create(input: NewApplication, request?: OnceKey): Promise<Created> {
    if (!request) return this.insert(input);
    return this.underWay.run(request, async () => {
      const before = await this.replay(request);
      if (before) return before;
      try {
        return await this.insert(input, request);
      } catch (error) {
        // Another process reserved the key in the meantime.
        const created = error instanceof KeyReserved ? await this.replay(request) : undefined;
        if (!created) throw error;
        return created;
      }
    });
  }

  /** @throws {NotFoundProblem} */
  async update(
    id: string,
    { secret, ...changes }: ApplicationChanges,
    action = 'application.changed',
  ): Promise<ShownApplication> {
    const stored = secret === undefined ? {} : { secret: this.cipher.encrypt(secret, secretPlace(id)) };
    return this.catalogue.change(async (manager, version) => {
      const application = await findOrFail(manager, id);
      const before = { ...application };
      // These columns alone: a secret that is not changed may be encrypted with a new key at this moment.
      await manager.update(ApplicationEntity, id, { ...changes, ...stored, version });
      Object.assign(application, changes, stored);
      await this.note(manager, action, before, application);
      return shown(application);
    });
  }

  /**
   * Makes a new secret; the old one stops working at once. `secret` is only ever returned here.
   * @throws {NotFoundProblem}
   */
  async rotateSecret(id: string): Promise<{ application: ShownApplication; secret: string }> {
    const secret = newSecret();
    return { application: await this.update(id, { secret }, 'application.secret-rotated'), secret };
  }

  /**
   * Its secret is not kept.
   * @throws {NotFoundProblem}
   */
  async remove(id: string): Promise<void> {
    await this.catalogue.change(async (manager, version) => {
      const application = await findOrFail(manager, id);
      await manager.update(ApplicationEntity, application.id, {
        deletedAt: new Date(),
        secret: '',
        alertEmail: null,
        version,
      });
      await this.note(manager, 'application.deleted', application, null);
    });
  }

  private async insert({ secret = newSecret(), ...input }: NewApplication, request?: OnceKey): Promise<Created> {
    if (input.clientId === this.config.settings.SUPERUSER_CLIENT_ID) throw clientIdTaken();
    const id = randomUUID();
    const stored = this.cipher.encrypt(secret, secretPlace(id));
    try {
      return await this.catalogue.change(async (manager, version) => {
        const values = { alertEmail: null, ...input, id, secret: stored, version, createdAt: new Date() };
        const application = manager.create(ApplicationEntity, values);
        if (request) await reserveKey(manager, request, application.id);
        await manager.insert(ApplicationEntity, application);
        await this.note(manager, 'application.created', null, application);
        return { kind: 'created', application: shown(application), secret };
      });
    } catch (error) {
      if (isUniqueViolation(error)) throw clientIdTaken();
      throw error;
    }
  }

  private async replay(request: OnceKey): Promise<Created | undefined> {
    const { manager } = this.postgres.dataSource;
    const before = await findCreated(manager, request);
    if (!before) return undefined;
    if (before.requestHash !== request.requestHash) throw new IdempotencyKeyReused();
    // Deleted or not: the request has been carried out.
    const application = await manager.findOneByOrFail(ApplicationEntity, { id: before.id });
    return { kind: 'replayed', application: shown(application) };
  }

  /** @param before null: it is new; `after` null: it is gone */
  private async note(
    manager: EntityManager,
    action: string,
    before: ApplicationEntity | null,
    after: ApplicationEntity | null,
  ): Promise<void> {
    const { id } = (after ?? before)!;
    const isSecretNew = after && !this.cipher.isSame(before?.secret ?? '', after.secret, secretPlace(id));
    await AuditLog.note(manager, {
      action,
      subject: `application/${id}`,
      before: before && audited(before),
      after: after && audited(after),
      changedSecrets: isSecretNew ? ['secret'] : [],
    });
  }
}

async function findOrFail(manager: EntityManager, id: string): Promise<ApplicationEntity> {
  const application = await manager.findOneBy(ApplicationEntity, { id, deletedAt: IsNull() });
  if (!application) throw new NotFoundProblem('There is no such application.');
  return application;
}

const audited = ({ clientId, label, scopes, isSuperuser, alertEmail }: ApplicationEntity) => ({
  clientId,
  label,
  scopes,
  isSuperuser,
  alertEmail,
});
