import { Injectable } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { IsNull, MoreThan, type EntityManager } from 'typeorm';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { reserveNothing, type Reserve } from '../request-keys/creation-requests.service.js';
import { DeletedMeanwhile } from '../request-keys/idempotency-key.js';
import { pageByName, type NamePageQuery } from '../infra/http/name-page.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { isUniqueViolation } from '../infra/postgres/postgres-errors.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { queryOf } from '../infra/postgres/query-of.js';
import { SecretCipher } from '../secrets/secret-cipher.service.js';
import {
  ApplicationChanges,
  findOrFail,
  type ChangesOfApplication,
  type MustFit,
  type NewApplication,
} from './application-changes.js';
import { ApplicationEntity } from './application.entity.js';

/** An application as it may be shown: without its secret. */
export type ShownApplication = Pick<
  ApplicationEntity,
  'id' | 'clientId' | 'label' | 'scopes' | 'isSuperuser' | 'alertEmail' | 'createdAt' | 'secretSetAt'
>;

export type ApplicationInput = Omit<NewApplication, 'secret'> & {
  /** None: one is made. */
  secret?: string | undefined;
};

export interface ApplicationWithSecret {
  application: ShownApplication;
  /** Only where it was made or set just now: it is not shown again. */
  secret: string;
}

const shown = ({
  id,
  clientId,
  label,
  scopes,
  isSuperuser,
  alertEmail,
  createdAt,
  secretSetAt,
}: ApplicationEntity): ShownApplication => ({
  id,
  clientId,
  label,
  scopes,
  isSuperuser,
  alertEmail,
  createdAt,
  secretSetAt,
});

const newSecret = (): string => randomBytes(32).toString('base64url');

const clientIdTaken = (): ValidationProblem =>
  new ValidationProblem([{ name: 'clientId', code: 'unique', reason: 'There is an application with this client id.' }]);

@Injectable()
export class ApplicationsService {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly postgres: Postgres,
    private readonly cipher: SecretCipher,
    private readonly config: Config,
  ) {}

  /** In the order of their client ids. */
  async list(): Promise<ShownApplication[]> {
    const applications = this.postgres.dataSource.getRepository(ApplicationEntity);
    const found = await applications.find({ where: { deletedAt: IsNull() }, order: { clientId: 'ASC' } });
    return found.map(shown);
  }

  async page(asked: NamePageQuery): Promise<ReturnType<typeof pageByName<ShownApplication>>> {
    const all = await this.list();
    const after = asked.cursor === undefined ? new Set() : await this.idsAfter(asked.cursor);
    return pageByName(all, asked, {
      nameOf: ({ clientId }) => clientId,
      textsOf: ({ id, clientId, label }) => [id, clientId, label],
      isAfter: ({ id }) => after.has(id),
    });
  }

  /** The order is that of the database's collation, so it alone can say. */
  private async idsAfter(clientId: string): Promise<Set<string>> {
    const applications = this.postgres.dataSource.getRepository(ApplicationEntity);
    const where = { deletedAt: IsNull(), clientId: MoreThan(clientId) };
    return new Set((await applications.find({ where, select: { id: true } })).map(({ id }) => id));
  }

  async get(id: string): Promise<ShownApplication> {
    return shown(await findOrFail(this.postgres.dataSource.manager, id));
  }

  /**
   * As it is now: for a request that has been carried out.
   * @throws {DeletedMeanwhile}
   */
  async getCreated(id: string): Promise<ShownApplication> {
    const application = await this.postgres.dataSource.manager.findOneBy(ApplicationEntity, {
      id,
      deletedAt: IsNull(),
    });
    if (!application) throw new DeletedMeanwhile();
    return shown(application);
  }

  /** @throws {ValidationProblem} code `unique` when there is an application with this client id */
  async create(whole: ApplicationInput, reserve: Reserve = reserveNothing): Promise<ApplicationWithSecret> {
    const { secret = newSecret(), ...input } = whole;
    if (input.clientId === this.config.settings.SUPERUSER_CLIENT_ID) throw clientIdTaken();
    try {
      return await this.change(async (changing, manager) => {
        const reserveKey = (id: string) => reserve(queryOf(manager), id);
        return { application: shown(await changing.create({ ...input, secret }, reserveKey)), secret };
      });
    } catch (error) {
      if (isUniqueViolation(error)) throw clientIdTaken();
      throw error;
    }
  }

  /**
   * @param mustFit throws where it cannot be done to the application as it is; so of the next two
   * @throws {NotFoundProblem}
   */
  async update(id: string, changes: ChangesOfApplication, mustFit?: MustFit): Promise<ShownApplication> {
    const changed = await this.catalogue.changeIfNeeded((manager, version) =>
      new ApplicationChanges(manager, version, this.cipher).update(id, changes, mustFit),
    );
    return changed ? shown(changed) : this.get(id);
  }

  /**
   * Makes a new secret; the old one changes and publishes nothing from then on. `secret` is only ever returned here.
   * @throws {NotFoundProblem}
   */
  async rotateSecret(id: string, mustFit?: MustFit): Promise<ApplicationWithSecret> {
    const secret = newSecret();
    const application = await this.change((changing) =>
      changing.update(id, { secret }, mustFit, 'application.secret-rotated'),
    );
    return { application: shown(application!), secret }; // a new secret is always a change
  }

  /**
   * Its secret is not kept.
   * @throws {NotFoundProblem}
   */
  remove(id: string, mustFit?: MustFit): Promise<void> {
    return this.change((changing) => changing.remove(id, mustFit));
  }

  private change<T>(work: (changing: ApplicationChanges, manager: EntityManager) => Promise<T>): Promise<T> {
    return this.catalogue.change((manager, version) =>
      work(new ApplicationChanges(manager, version, this.cipher), manager),
    );
  }
}
