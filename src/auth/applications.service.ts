import { Injectable } from '@nestjs/common';
import { randomBytes, randomUUID } from 'node:crypto';
import { IsNull, type EntityManager } from 'typeorm';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { IdempotencyKeyReused, RequestsUnderWay } from '../infra/http/idempotency-key.js';
import { NotFoundProblem, ValidationProblem } from '../infra/http/problem.js';
import { createdBefore, KeyTaken, takeKey, type CreatingRequest } from '../infra/postgres/creating-request.js';
import { isUniqueViolation } from '../infra/postgres/postgres-errors.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { ApplicationEntity } from './application.entity.js';

/** An application as it may be shown: without its secret. */
export type ShownApplication = Pick<
  ApplicationEntity,
  'id' | 'clientId' | 'label' | 'scopes' | 'isSuperuser' | 'createdAt'
>;

export interface NewApplication {
  label: string;
  clientId: string;
  scopes: string[];
  isSuperuser: boolean;
  /** None: one is made. */
  secret?: string;
}

export interface ApplicationChanges {
  label?: string;
  scopes?: string[];
  isSuperuser?: boolean;
  secret?: string;
}

export interface Created {
  application: ShownApplication;
  secret: string;
  /** It was created before, by the same request. */
  isReplayed: boolean;
}

const shown = ({ id, clientId, label, scopes, isSuperuser, createdAt }: ApplicationEntity): ShownApplication => ({
  id,
  clientId,
  label,
  scopes,
  isSuperuser,
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
   * `secret` is only ever returned here, and again to a request that is repeated under its key.
   * @throws {ValidationProblem} code `unique` when the client id is taken
   * @throws {IdempotencyKeyInFlight}
   * @throws {IdempotencyKeyReused}
   */
  async create(input: NewApplication, request?: CreatingRequest): Promise<Created> {
    if (!request) return this.insert(input);
    const { application, operation, key } = request;
    return this.underWay.run(application, operation, key, async () => {
      const before = await this.findCreated(request);
      if (before) return before;
      try {
        return await this.insert(input, request);
      } catch (error) {
        // Another process was faster by a moment.
        const created = error instanceof KeyTaken ? await this.findCreated(request) : undefined;
        if (!created) throw error;
        return created;
      }
    });
  }

  /** @throws {NotFoundProblem} */
  async update(id: string, changes: ApplicationChanges): Promise<ShownApplication> {
    return this.catalogue.change(async (manager, revision) => {
      const application = await findOrFail(manager, id);
      Object.assign(application, changes, { revision });
      await manager.save(application);
      return shown(application);
    });
  }

  /**
   * Makes a new secret; the old one stops working at once. `secret` is only ever returned here.
   * @throws {NotFoundProblem}
   */
  async rotateSecret(id: string): Promise<{ application: ShownApplication; secret: string }> {
    const secret = newSecret();
    return { application: await this.update(id, { secret }), secret };
  }

  /** @throws {NotFoundProblem} */
  async remove(id: string): Promise<void> {
    await this.catalogue.change(async (manager, revision) => {
      const application = await findOrFail(manager, id);
      await manager.update(ApplicationEntity, application.id, { deletedAt: new Date(), revision });
    });
  }

  private async insert(
    { secret = newSecret(), ...input }: NewApplication,
    request?: CreatingRequest,
  ): Promise<Created> {
    if (input.clientId === this.config.settings.SUPERUSER_CLIENT_ID) throw clientIdTaken();
    try {
      return await this.catalogue.change(async (manager, revision) => {
        const values = { ...input, id: randomUUID(), secret, revision, createdAt: new Date() };
        const application = manager.create(ApplicationEntity, values);
        if (request) await takeKey(manager, request, application.id);
        await manager.insert(ApplicationEntity, application);
        return { application: shown(application), secret, isReplayed: false };
      });
    } catch (error) {
      if (isUniqueViolation(error)) throw clientIdTaken();
      throw error;
    }
  }

  private async findCreated(request: CreatingRequest): Promise<Created | undefined> {
    const { manager } = this.postgres.dataSource;
    const before = await createdBefore(manager, request);
    if (!before) return undefined;
    if (before.requestHash !== request.requestHash) throw new IdempotencyKeyReused();
    // Deleted or not: the request has been carried out.
    const application = await manager.findOneByOrFail(ApplicationEntity, { id: before.id });
    return { application: shown(application), secret: application.secret, isReplayed: true };
  }
}

async function findOrFail(manager: EntityManager, id: string): Promise<ApplicationEntity> {
  const application = await manager.findOneBy(ApplicationEntity, { id, deletedAt: IsNull() });
  if (!application) throw new NotFoundProblem('There is no such application.');
  return application;
}
