import * as z from 'zod';
import { allScopes } from '../auth/scopes.js';
import { givenFields } from '../infra/given-fields.js';
import { paramsOf } from '../infra/http/check-input.js';
import type { InvalidParam } from '../infra/http/problem.js';
import { fitScalars } from './fit-scalars.js';
import {
  flagIn,
  isOfOpenNotificaties,
  namespaces,
  withoutCounterpart,
  type Credential,
  type Kanaal,
  type NotificationsConfig,
  type OpenAbonnement,
} from './open-notificaties-schema.js';

/** A remark for the operator on a place in the file, although nothing is wrong there. */
export interface Note {
  name: string;
  note: string;
}

export interface Converted {
  /** Has no field of what the file says nothing of. */
  configuration: Record<string, unknown>;
  notes: Note[];
  problems: InvalidParam[];
  /** Where in the file a field of the configuration comes from. */
  originOf: (name: string) => string;
}

type Namespace = keyof typeof namespaces;
type SourceOf = (name: string) => string | undefined;

/** The YAML of Open Notificaties' `setup_configuration`, its references resolved, as a configuration of Heraut. */
export function fromOpenNotificaties(file: Record<string, unknown>, sourceOf?: SourceOf): Converted {
  return new Conversion(file, sourceOf).convert();
}

class Conversion {
  private readonly notes: Note[] = [];
  private readonly problems: InvalidParam[] = [];
  /** Of each list of the configuration, the namespace that it comes from, and the names of its items there. */
  private readonly origins = new Map<string, { namespace: string; items: string[] }>();

  constructor(
    private readonly file: Record<string, unknown>,
    private readonly sourceOf: SourceOf | undefined,
  ) {}

  convert(): Converted {
    const enabled = this.readFlags();
    const configuration: Record<string, unknown> = {};
    if (enabled.has('vng_api_common_credentials')) {
      const name = 'vng_api_common_credentials';
      configuration.applications = this.items<Credential>(name, 'applications').map(({ item }) =>
        givenFields({ clientId: item.identifier, secret: item.secret, scopesIfNew: allScopes }),
      );
      const scopes = `those that are new get the scopes ${allScopes.join(' and ')}: the file does not say which`;
      this.note(name, scopes);
    }
    if (enabled.has('notifications_kanalen_config')) {
      configuration.channels = this.items<Kanaal>('notifications_kanalen_config', 'channels').map(({ item }) =>
        givenFields({ name: item.naam, documentationLink: item.documentatie_link, filters: item.filters }),
      );
    }
    if (enabled.has('notifications_config')) {
      const name = 'notifications_config';
      const read = this.read<NotificationsConfig>(namespaces[name].whole, this.file[name], name);
      if (read) configuration.retryPolicy = this.policy(read);
    }
    if (enabled.has('notifications_abonnementen_config')) {
      configuration.subscriptions = this.items<OpenAbonnement>(
        'notifications_abonnementen_config',
        'subscriptions',
      ).map(({ item, name }) => this.subscription(item, name));
      const owner = 'those that are new belong to the superuser of the settings: the file does not name their owners';
      this.note('notifications_abonnementen_config', owner);
    }
    const { notes, problems } = this;
    return { configuration, notes, problems, originOf: (name) => this.originOf(name) };
  }

  /** The namespaces to carry out. The others are not looked at. */
  private readFlags(): Set<Namespace> {
    const enabled = new Set<Namespace>();
    let isAny = false;
    const isOn = (flag: string): boolean => {
      const value = flagIn(this.file, flag);
      if (typeof value !== 'boolean') this.refuse(flag, 'invalid', 'Must be true or false.');
      isAny ||= value === true;
      return value === true;
    };
    for (const [name, { flag }] of Object.entries(namespaces) as [Namespace, { flag: string }][]) {
      if (isOn(flag)) {
        if (this.file[name] === undefined) this.refuse(flag, 'required', `${name} is enabled, but is not there.`);
        else enabled.add(name);
      } else if (this.file[name] !== undefined) this.note(name, `is left out: ${flag} is not true`);
    }
    for (const [name, { flag, note }] of Object.entries(withoutCounterpart)) {
      isOn(flag);
      if (this.file[name] !== undefined) this.note(name, `has no counterpart here: ${note}`);
    }
    for (const key of Object.keys(this.file)) {
      if (isOfOpenNotificaties(key)) continue;
      this.note(key, 'is no namespace of Open Notificaties, and is not read');
    }
    if (!isAny)
      this.refuse(
        '',
        'invalid',
        'No namespace is enabled: set the flag of one, such as notifications_kanalen_config_enable.',
      );
    return enabled;
  }

  private items<Item>(
    namespace: Exclude<Namespace, 'notifications_config'>,
    list: string,
  ): { item: Item; name: string }[] {
    const read = this.read(z.strictObject({ items: z.array(z.unknown()) }), this.file[namespace], namespace);
    const found = (read?.items ?? []).flatMap((value, index) => {
      const name = `${namespace}.items.${index}`;
      const item = this.read<Item>(namespaces[namespace].item as unknown as z.ZodType<Item>, value, name);
      return item === undefined ? [] : [{ item, name }];
    });
    this.origins.set(list, { namespace, items: found.map(({ name }) => name) });
    return found;
  }

  private read<T>(schema: z.ZodType<T>, value: unknown, name: string): T | undefined {
    const fitted = fitScalars(schema, value, (field) => this.sourceOf?.(`${name}.${field}`));
    const parsed = schema.safeParse(fitted, { reportInput: true });
    if (parsed.success) return parsed.data;
    for (const param of paramsOf(parsed.error))
      this.refuse(param.name === '' ? name : `${name}.${param.name}`, param.code, param.reason);
    return undefined;
  }

  private policy(read: NotificationsConfig): Record<string, unknown> {
    if (read.notifications_api_service_identifier !== undefined) {
      const name = 'notifications_config.notifications_api_service_identifier';
      this.note(name, 'has no counterpart here: Heraut sends no notificaties of its own');
    }
    const unlessZero = (field: Exclude<keyof NotificationsConfig, 'notifications_api_service_identifier'>) => {
      if (read[field] !== 0) return read[field];
      this.note(`notifications_config.${field}`, 'is left out: 0 is ignored, as by Open Notificaties');
      return undefined;
    };
    return givenFields({
      maxRetries: read.notification_delivery_max_retries,
      backoffFactor: unlessZero('notification_delivery_retry_backoff'),
      maxDelaySeconds: unlessZero('notification_delivery_retry_backoff_max'),
      baseFactor: unlessZero('notification_delivery_base_factor'),
    });
  }

  private subscription(item: OpenAbonnement, name: string): Record<string, unknown> {
    if (item.send_cloudevents) this.note(`${name}.send_cloudevents`, ofCloudEvents);
    else if (item.cloudevent_filters.length > 0)
      this.note(`${name}.cloudevent_filters`, 'has no counterpart here: it gets notificaties of its kanalen only');
    return givenFields({
      id: item.uuid,
      callbackUrl: item.callback_url,
      authorization: givenFields(this.authorization(item, name)),
      // Each entry is an alternative, also where two name the same kanaal. A receiver of CloudEvents could not read a
      // notificatie; a pause would have everything held for it instead.
      channels: item.send_cloudevents ? [] : item.kanalen?.map(({ naam, filters }) => ({ channel: naam, filters })),
    });
  }

  private authorization(item: OpenAbonnement, name: string): Record<string, unknown> {
    const { auth, auth_client_id: clientId, secret, oauth2_token_url: tokenUrl, oauth2_scope: scope } = item;
    const need = (field: 'auth' | 'auth_client_id' | 'secret' | 'oauth2_token_url') => {
      if (item[field] === '') this.refuse(`${name}.${field}`, 'required', `auth_type ${item.auth_type} needs it.`);
    };
    switch (item.auth_type) {
      case 'no_auth':
        return { kind: 'verbatim', auth: '' };
      case 'api_key':
        need('auth');
        return { kind: 'verbatim', auth };
      case 'zgw':
        need('auth_client_id');
        need('secret');
        return { kind: 'zgw', clientId, secret };
      case 'oauth2_client_credentials':
        need('auth_client_id');
        need('secret');
        need('oauth2_token_url');
        return { kind: 'oauth2', tokenUrl, clientId, clientSecret: secret, scope: scope === '' ? null : scope };
    }
  }

  private note(name: string, note: string): void {
    this.notes.push({ name, note });
  }

  private refuse(name: string, code: string, reason: string): void {
    this.problems.push({ name, code, reason });
  }

  private originOf(name: string): string {
    const [list = '', index = '', ...rest] = name.split('.');
    const field = rest.join('.');
    if (list === 'retryPolicy') return `notifications_config${policyFields[index] ? `.${policyFields[index]}` : ''}`;
    const origin = this.origins.get(list);
    if (index === '') return origin?.namespace ?? '';
    const item = origin?.items[Number(index)];
    if (item === undefined) return '';
    const found = fields.find(([pattern]) => pattern.test(field));
    return found ? `${item}.${field.replace(found[0], found[1])}` : item;
  }
}

const ofCloudEvents =
  'has no counterpart here: Open Notificaties sends this abonnement CloudEvents only, so it gets nothing here, whatever its kanalen; when its receiver reads notificaties, set it to false';

const policyFields: Readonly<Record<string, string>> = {
  maxRetries: 'notification_delivery_max_retries',
  backoffFactor: 'notification_delivery_retry_backoff',
  maxDelaySeconds: 'notification_delivery_retry_backoff_max',
  baseFactor: 'notification_delivery_base_factor',
};

/** Of an item of the configuration, as the file calls them. */
const fields: readonly (readonly [RegExp, string])[] = [
  [/^clientId$/, 'identifier'],
  [/^secret$/, 'secret'],
  [/^name$/, 'naam'],
  [/^documentationLink$/, 'documentatie_link'],
  [/^filters/, 'filters'],
  [/^id$/, 'uuid'],
  [/^callbackUrl$/, 'callback_url'],
  [/^channels\.(\d+)\.channel$/, 'kanalen.$1.naam'],
  [/^channels\.(\d+)/, 'kanalen.$1'],
  [/^channels$/, 'kanalen'],
  [/^authorization\.auth$/, 'auth'],
  [/^authorization\.clientId$/, 'auth_client_id'],
  [/^authorization\.(secret|clientSecret)$/, 'secret'],
  [/^authorization\.tokenUrl$/, 'oauth2_token_url'],
  [/^authorization\.scope$/, 'oauth2_scope'],
  [/^authorization.*$/, 'auth_type'],
];
