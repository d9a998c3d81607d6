import { Injectable } from '@nestjs/common';
import { randomBytes, randomUUID } from 'node:crypto';
import { IsNull, type EntityManager } from 'typeorm';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { NotFoundProblem, ValidationProblem } from '../infra/http/problem.js';
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
   * `secret` is only ever returned here.
   * @throws {ValidationProblem} code `unique` when the client id is taken
   */
  async create({
    secret = newSecret(),
    ...input
  }: NewApplication): Promise<{ application: ShownApplication; secret: string }> {
    if (input.clientId === this.config.settings.SUPERUSER_CLIENT_ID) throw clientIdTaken();
    try {
      return await this.catalogue.change(async (manager, revision) => {
        const application = manager.create(ApplicationEntity, {
          ...input,
          id: randomUUID(),
          secret,
          revision,
          createdAt: new Date(),
        });
        await manager.insert(ApplicationEntity, application);
        return { application: shown(application), secret };
      });
    } catch (error) {
      if (isUniqueViolation(error)) throw clientIdTaken();
      throw error;
    }
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
}

async function findOrFail(manager: EntityManager, id: string): Promise<ApplicationEntity> {
  const application = await manager.findOneBy(ApplicationEntity, { id, deletedAt: IsNull() });
  if (!application) throw new NotFoundProblem('There is no such application.');
  return application;
}
