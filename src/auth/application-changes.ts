import { randomUUID } from 'node:crypto';
import { IsNull, type EntityManager } from 'typeorm';
import { AuditLog, isAnyChange, type Change } from '../audit/audit-log.js';
import { givenFields } from '../infra/given-fields.js';
import { NotFoundProblem } from '../infra/http/problem.js';
import { timeIn } from '../infra/postgres/time-in.js';
import type { SecretCipher } from '../secrets/secret-cipher.service.js';
import { secretPlace } from './application.js';
import { ApplicationEntity } from './application.entity.js';

export interface NewApplication {
  label: string;
  clientId: string;
  scopes: string[];
  isSuperuser: boolean;
  alertEmail?: string | null | undefined;
  secret: string;
}

export interface ChangesOfApplication {
  label?: string | undefined;
  scopes?: string[] | undefined;
  isSuperuser?: boolean | undefined;
  alertEmail?: string | null | undefined;
  secret?: string | undefined;
}

export type MustFit = (current: ApplicationEntity) => void;

/**
 * All that can be done to applications, within one change of the catalogue that may be about several of them. Each is
 * noted in the audit log.
 */
export class ApplicationChanges {
  constructor(
    private readonly manager: EntityManager,
    private readonly version: number,
    private readonly cipher: SecretCipher,
  ) {}

  /**
   * @param reserve runs before it is inserted
   * @throws a unique violation when there is an application with this client id
   */
  async create(
    input: NewApplication,
    reserve: (id: string) => Promise<void> = () => Promise.resolve(),
  ): Promise<ApplicationEntity> {
    const { manager, version } = this;
    const id = randomUUID();
    const secret = this.cipher.encrypt(input.secret, secretPlace(id));
    const { alertEmail = null, ...given } = input;
    const createdAt = await timeIn(manager);
    const values = { ...given, alertEmail, id, secret, secretSetAt: null, version, createdAt };
    const application = manager.create(ApplicationEntity, values);
    await reserve(id);
    await manager.insert(ApplicationEntity, application);
    await AuditLog.note(manager, this.changeOf('application.created', null, application));
    return application;
  }

  /**
   * @returns undefined: it is already as these changes make it, and nothing was written
   * @param mustFit throws where it cannot be done to the application as it is
   * @throws {NotFoundProblem}
   */
  async update(
    id: string,
    { secret, ...changes }: ChangesOfApplication,
    mustFit?: MustFit,
    action = 'application.changed',
  ): Promise<ApplicationEntity | undefined> {
    const { manager, version } = this;
    const before = await findOrFail(manager, id);
    mustFit?.(before);
    const stored = secret === undefined ? {} : await this.newSecret(before, secret);
    const given = givenFields(changes);
    const after: ApplicationEntity = { ...before, ...given, ...stored };
    const change = this.changeOf(action, before, after);
    if (!isAnyChange(change)) return undefined;
    // These columns alone: a secret that is not changed may be encrypted with a new key at this moment.
    await manager.update(ApplicationEntity, id, { ...given, ...stored, version });
    await AuditLog.note(manager, change);
    return after;
  }

  /**
   * Its secret is not kept.
   * @param mustFit throws where it cannot be done to the application as it is
   * @throws {NotFoundProblem}
   */
  async remove(id: string, mustFit?: MustFit): Promise<void> {
    const { manager, version } = this;
    const application = await findOrFail(manager, id);
    mustFit?.(application);
    await manager.update(ApplicationEntity, application.id, {
      deletedAt: await timeIn(manager),
      secret: '',
      alertEmail: null,
      version,
    });
    await AuditLog.note(manager, this.changeOf('application.deleted', application, null));
  }

  /** Given the one that it has, it is as old as before. */
  private async newSecret({ id, secret: before, secretSetAt }: ApplicationEntity, given: string) {
    const secret = this.cipher.encrypt(given, secretPlace(id));
    const isSame = this.cipher.isSame(before, secret, secretPlace(id));
    return { secret, secretSetAt: isSame ? secretSetAt : await timeIn(this.manager) };
  }

  /** @param before null: it is new; `after` null: it is gone */
  private changeOf(action: string, before: ApplicationEntity | null, after: ApplicationEntity | null): Change {
    const { id } = (after ?? before)!;
    const isSecretNew = after && !this.cipher.isSame(before?.secret ?? '', after.secret, secretPlace(id));
    return {
      action,
      subject: `application/${id}`,
      before: before && audited(before),
      after: after && audited(after),
      changedSecrets: isSecretNew ? ['secret'] : [],
    };
  }
}

/** @throws {NotFoundProblem} */
export async function findOrFail(manager: EntityManager, id: string): Promise<ApplicationEntity> {
  const application = await manager.findOneBy(ApplicationEntity, { id, deletedAt: IsNull() });
  if (!application) throw notFound();
  return application;
}

export const notFound = () => new NotFoundProblem('There is no such application.');

const audited = ({ clientId, label, scopes, isSuperuser, alertEmail }: ApplicationEntity) => ({
  clientId,
  label,
  scopes,
  isSuperuser,
  alertEmail,
});
