import { Injectable } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { IsNull, type EntityManager } from 'typeorm';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { IdempotencyKeyReused, RequestsUnderWay } from '../idempotency/idempotency-key.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { findCreated, KeyReserved, reserveKey } from '../ledger/created-once.js';
import type { OnceKey } from '../ledger/once-key.js';
import { isUniqueViolation } from '../infra/postgres/postgres-errors.js';
import { Postgres } from '../infra/postgres/postgres.js';
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

const hashPlace = ({ application, operation, key }: OnceKey): string =>
  `once_key.request_hash/${JSON.stringify([application, operation, key])}`;

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
  async create(input: ApplicationInput, request?: OnceKey): Promise<Created> {
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

  /**
   * @param mustFit throws where it cannot be done to the application as it is; so of the next two
   * @throws {NotFoundProblem}
   */
  update(id: string, changes: ChangesOfApplication, mustFit?: MustFit): Promise<ShownApplication> {
    return this.change(async (changing) => shown(await changing.update(id, changes, mustFit)));
  }

  /**
   * Makes a new secret; the old one stops working at once. `secret` is only ever returned here.
   * @throws {NotFoundProblem}
   */
  async rotateSecret(id: string, mustFit?: MustFit): Promise<{ application: ShownApplication; secret: string }> {
    const secret = newSecret();
    const application = await this.change((changing) =>
      changing.update(id, { secret }, mustFit, 'application.secret-rotated'),
    );
    return { application: shown(application), secret };
  }

  /**
   * Its secret is not kept.
   * @throws {NotFoundProblem}
   */
  remove(id: string, mustFit?: MustFit): Promise<void> {
    return this.change((changing) => changing.remove(id, mustFit));
  }

  private async insert(whole: ApplicationInput, request?: OnceKey): Promise<Created> {
    const { secret = newSecret(), ...input } = whole;
    const stored = request && (whole.secret === undefined ? request : this.withEncryptedHash(request));
    if (input.clientId === this.config.settings.SUPERUSER_CLIENT_ID) throw clientIdTaken();
    try {
      return await this.change(async (changing, manager) => {
        const reserve = stored && ((id: string) => reserveKey(manager, stored, id));
        const application = await changing.create({ ...input, secret }, reserve);
        return { kind: 'created', application: shown(application), secret };
      });
    } catch (error) {
      if (isUniqueViolation(error)) throw clientIdTaken();
      throw error;
    }
  }

  /** Of a request with a secret nothing else is unknown to a reader of the database, who could try secrets until the hash is the same. */
  private withEncryptedHash(request: OnceKey): OnceKey {
    return { ...request, requestHash: this.cipher.encrypt(request.requestHash ?? '', hashPlace(request)) };
  }

  private change<T>(work: (changing: ApplicationChanges, manager: EntityManager) => Promise<T>): Promise<T> {
    return this.catalogue.change((manager, version) =>
      work(new ApplicationChanges(manager, version, this.cipher), manager),
    );
  }

  private async replay(request: OnceKey): Promise<Created | undefined> {
    const { manager } = this.postgres.dataSource;
    const before = await findCreated(manager, request);
    if (!before) return undefined;
    if (!this.cipher.isSame(before.requestHash ?? '', request.requestHash ?? '', hashPlace(request)))
      throw new IdempotencyKeyReused();
    // Deleted or not: the request has been carried out.
    const application = await manager.findOneByOrFail(ApplicationEntity, { id: before.id });
    return { kind: 'replayed', application: shown(application) };
  }
}
