import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { createSecretKey, type KeyObject } from 'node:crypto';
import { Catalogue, type CatalogueDirectory } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { SecretCipher, UnreadableSecret } from '../secrets/secret-cipher.service.js';
import { secretPlace, type Application } from './application.js';

interface ApplicationRow {
  id: string;
  client_id: string;
  secret: string;
  scopes: string[];
  is_superuser: boolean;
  alert_email: string | null;
  is_deleted: boolean;
}

const changedSince = statement(
  'applications-changed-since',
  `SELECT id, client_id, secret, scopes, is_superuser, alert_email, deleted_at IS NOT NULL AS is_deleted
   FROM application WHERE version > $known ORDER BY version`,
);

/**
 * Every application, in memory, by client id. A change makes a new object, so a verified token of the
 * old object no longer counts. The superuser of the settings goes before an application of the same name.
 */
@Injectable()
export class ApplicationDirectory implements CatalogueDirectory, OnApplicationBootstrap {
  private readonly logger = new Logger(ApplicationDirectory.name);
  private readonly byClientId = new Map<string, Application>();
  private readonly superuser: Application | undefined;

  private readonly secretMinBytes: number;

  constructor(
    private readonly catalogue: Catalogue,
    private readonly postgres: Postgres,
    private readonly cipher: SecretCipher,
    { settings }: Config,
  ) {
    this.secretMinBytes = settings.SECRET_MIN_BYTES;
    if (settings.SUPERUSER_SECRET) {
      this.superuser = {
        id: 'superuser',
        clientId: settings.SUPERUSER_CLIENT_ID,
        key: keyOf(settings.SUPERUSER_SECRET),
        scopes: new Set(),
        isSuperuser: true,
        alertEmail: null,
      };
    }
    catalogue.register(this);
  }

  /**
   * Short secrets go on working, so that an upgrade stops nobody; but their tokens can be forged by whoever guesses
   * them.
   */
  async onApplicationBootstrap(): Promise<void> {
    await this.catalogue.refresh();
    const isShort = ({ key }: Application) => key !== undefined && key.symmetricKeySize! < this.secretMinBytes;
    const applications = [...this.byClientId.values()].filter(isShort).length;
    const isSuperusersShort = this.superuser !== undefined && isShort(this.superuser);
    if (applications === 0 && !isSuperusersShort) return;
    this.logger.warn({
      event: 'applications.short-secrets',
      applications,
      superuserSecret: isSuperusersShort,
      minBytes: this.secretMinBytes,
    });
  }

  find(clientId: string): Application | undefined {
    return clientId === this.superuser?.clientId ? this.superuser : this.byClientId.get(clientId);
  }

  async refresh(known: number): Promise<void> {
    const rows = await this.postgres.query<ApplicationRow>(changedSince, { known });
    if (known === 0) this.byClientId.clear();
    for (const row of rows) {
      // A client id that was freed may belong to another application by now.
      if (row.is_deleted && this.byClientId.get(row.client_id)?.id === row.id) this.byClientId.delete(row.client_id);
      if (row.is_deleted) continue;
      const secret = this.secretOf(row);
      this.byClientId.set(row.client_id, {
        id: row.id,
        clientId: row.client_id,
        key: keyOf(secret ?? ''),
        ...(secret === undefined && { isUnreadable: true }),
        scopes: new Set(row.scopes),
        isSuperuser: row.is_superuser,
        alertEmail: row.alert_email,
      });
    }
  }

  /**
   * Undefined where it cannot be decrypted, since it is encrypted with a key that other processes have: callers are
   * told to try again, and may come to one of these.
   */
  private secretOf({ id, client_id, secret }: ApplicationRow): string | undefined {
    try {
      return this.cipher.decrypt(secret, secretPlace(id));
    } catch (error) {
      if (!(error instanceof UnreadableSecret)) throw error;
      this.logger.error({ event: 'secrets.unreadable', clientId: client_id, key: error.keyId, error });
      return undefined;
    }
  }
}

const keyOf = (secret: string): KeyObject | undefined =>
  secret === '' ? undefined : createSecretKey(Buffer.from(secret, 'utf8'));
