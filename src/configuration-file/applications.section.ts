import { Injectable } from '@nestjs/common';
import { IsNull } from 'typeorm';
import { ApplicationChanges } from '../auth/application-changes.js';
import { ApplicationEntity } from '../auth/application.entity.js';
import { secretPlace } from '../auth/application.js';
import { refusalOfClientId, refusalOfSecret } from '../auth/applications-io.js';
import { scopes } from '../auth/scopes.js';
import { Config } from '../config/config.module.js';
import { SecretCipher } from '../secrets/secret-cipher.service.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { ConfiguredApplication } from './configuration-schema.js';
import { fieldsThatDiffer, type Shown } from './fields-that-differ.js';
import {
  mostUnnamed,
  nothingPlanned,
  oneByOne,
  type Planned,
  type Planning,
  type Section,
  type Step,
} from './planning.js';
import type { Entry } from './read-configuration.js';

@Injectable()
export class ApplicationsSection implements Section {
  constructor(
    private readonly cipher: SecretCipher,
    private readonly config: Config,
    private readonly subscriptions: SubscriptionDirectory,
  ) {}

  async plan(planning: Planning): Promise<Planned> {
    const { manager, configuration, options } = planning;
    planning.clientIds.add(this.config.settings.SUPERUSER_CLIENT_ID);
    planning.consumers.add(this.config.settings.SUPERUSER_CLIENT_ID);
    const entries = configuration.applications;
    if (!entries) {
      const select = { clientId: true, scopes: true, isSuperuser: true };
      for (const one of await manager.find(ApplicationEntity, { select, where: { deletedAt: IsNull() } }))
        know(planning, one.clientId, one);
      return nothingPlanned;
    }
    const stored = await manager.findBy(ApplicationEntity, { deletedAt: IsNull() });
    const byClientId = new Map(stored.map((one) => [one.clientId, one]));
    const seen = new Set<string>();
    const steps: Step[] = [];
    const owned = this.owned(planning);
    for (const entry of entries) {
      const { clientId } = entry.wanted;
      if (!planning.isFirst(seen, clientId, `${entry.name}.clientId`)) continue;
      const step = this.planEntry(planning, entry, byClientId.get(clientId), owned.get(clientId) ?? 0);
      if (step) steps.push(step);
    }
    const others = stored.filter(({ clientId }) => !seen.has(clientId));
    const unchanged = seen.size - steps.length;
    if (options.isPruning) {
      for (const { clientId } of others) planning.pruned.add(clientId);
      const caller = others.find(({ clientId }) => clientId === options.caller);
      if (caller) {
        const reason = `Pruning would remove ${caller.clientId}, the application that asks for it: name it in the file.`;
        planning.refuse('applications', 'invalid', reason);
      }
      return {
        ...oneByOne([...steps, ...others.map((one) => this.removal(one, owned.get(one.clientId) ?? 0))]),
        unchanged,
        unnamed: nothingPlanned.unnamed,
      };
    }
    for (const one of others) know(planning, one.clientId, one);
    const first = others.slice(0, mostUnnamed).map(({ clientId }) => clientId);
    return { ...oneByOne(steps), unchanged, unnamed: { count: others.length, first } };
  }

  /** How many subscriptions that are there stay with each application, by its client id. */
  private owned({ configuration, options }: Planning): ReadonlyMap<string, number> {
    const named =
      configuration.subscriptions && new Map(configuration.subscriptions.map(({ wanted }) => [wanted.id, wanted]));
    const counts = new Map<string, number>();
    for (const { id, ownerClientId } of this.subscriptions.all()) {
      const isGoing = named !== undefined && options.isPruning && !named.has(id);
      const isKept = (named?.get(id)?.ownerClientId ?? ownerClientId) === ownerClientId;
      if (!isGoing && isKept) counts.set(ownerClientId, (counts.get(ownerClientId) ?? 0) + 1);
    }
    return counts;
  }

  /**
   * @param owned how many subscriptions are its own
   * @returns undefined: it is as it should be, or something is wrong with it
   */
  private planEntry(
    planning: Planning,
    { name, wanted }: Entry<ConfiguredApplication>,
    stored: ApplicationEntity | undefined,
    owned: number,
  ): Step | undefined {
    const { clientId, secret } = wanted;
    if (clientId === this.config.settings.SUPERUSER_CLIENT_ID) {
      const reason = 'This is the client id of the superuser of the settings (SUPERUSER_CLIENT_ID).';
      planning.refuse(`${name}.clientId`, 'unique', reason);
      return undefined;
    }
    const unusable = stored ? undefined : refusalOfClientId(clientId);
    if (unusable) planning.refuse(`${name}.clientId`, unusable.code, unusable.reason);
    const before = stored ? this.shown(stored) : null;
    const after = {
      fields: {
        label: wanted.label ?? stored?.label ?? clientId,
        scopes: (wanted.scopes ?? stored?.scopes ?? wanted.scopesIfNew ?? []).toSorted(),
        isSuperuser: wanted.isSuperuser ?? stored?.isSuperuser ?? false,
        alertEmail: wanted.alertEmail === undefined ? (stored?.alertEmail ?? null) : wanted.alertEmail,
      },
      secrets: secret === undefined ? (before?.secrets ?? {}) : { secret },
    };
    know(planning, clientId, after.fields);
    const fields = fieldsThatDiffer(before, after);
    const isSecretNew = fields.some((field) => 'secret' in field);
    if (!stored && secret === undefined) {
      planning.refuse(`${name}.secret`, 'required', 'A new application needs its secret.');
      return undefined;
    }
    const tooShort = isSecretNew && secret !== undefined ? refusalOfSecret(secret, this.config.settings) : undefined;
    if (tooShort) planning.refuse(`${name}.secret`, tooShort.code, tooShort.reason);
    if (stored && fields.length === 0) return undefined;
    const notes = owned === 0 ? [] : notesOfOwned(owned, stored, after.fields);
    return {
      change: {
        section: 'applications',
        action: stored ? 'change' : 'create',
        key: clientId,
        about: null,
        fields,
        notes,
      },
      carryOut: async (manager, version) => {
        const changing = new ApplicationChanges(manager, version, this.cipher);
        if (stored) await changing.update(stored.id, { ...after.fields, ...(isSecretNew && { secret }) });
        else await changing.create({ clientId, ...after.fields, secret: secret! });
      },
    };
  }

  private removal({ id, clientId, label }: ApplicationEntity, owned: number): Step {
    const note = `Its subscriptions (${owned}) stay and are delivered to: remove or pause them, or name another owner. A new application of this client id owns them again.`;
    const notes = owned === 0 ? [] : [note];
    return {
      change: { section: 'applications', action: 'remove', key: clientId, about: label, fields: [], notes },
      carryOut: async (manager, version) => {
        await new ApplicationChanges(manager, version, this.cipher).remove(id);
      },
    };
  }

  private shown({ id, label, scopes, isSuperuser, alertEmail, secret }: ApplicationEntity): Shown {
    return {
      fields: { label, scopes: scopes.toSorted(), isSuperuser, alertEmail },
      secrets: { secret: this.cipher.decryptIfPossible(secret, secretPlace(id)) },
    };
  }
}

type Rights = Pick<ApplicationEntity, 'scopes' | 'isSuperuser'>;

const mayConsume = ({ scopes: granted, isSuperuser }: Rights): boolean =>
  isSuperuser || granted.includes(scopes.consume);

/** @param before undefined: it is new */
function notesOfOwned(owned: number, before: Rights | undefined, after: Rights): string[] {
  if (!before)
    return [
      `It owns the subscriptions (${owned}) of the application that had this client id before, with their signing keys and what was accepted for them.`,
    ];
  if (!mayConsume(before) || mayConsume(after)) return [];
  return [
    `Its subscriptions (${owned}) go on being delivered to, and it cannot change or delete them any more: pause or remove them.`,
  ];
}

function know({ clientIds, consumers }: Planning, clientId: string, rights: Rights): void {
  clientIds.add(clientId);
  if (mayConsume(rights)) consumers.add(clientId);
}
