import type { Channel } from '../channels/channel.js';
import { areNamesConsistent, canonicalName, outgoingName } from '../channels/filter-names.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import type { InvalidParam } from '../infra/http/problem.js';
import { isStorable } from '../infra/postgres/storable-text.js';
import { FieldReader, readText, type TextRules } from '../nrc/fields.js';
import { readMoment, type Moment } from './moment.js';

export interface ParsedNotification {
  channel: Channel;
  /** By canonical name. */
  characteristics: Map<string, string>;
  hoofdObject: string;
  resource: string;
  resourceUrl: string;
  actie: string;
  /** `aanmaakdatum`, in milliseconds since 1970. */
  createdAt: number;
  /** The exact text that every receiver gets, and that the publisher gets back. */
  body: string;
}

export type ParseResult =
  | { kind: 'parsed'; notification: ParsedNotification }
  /** `dependsOnChannels`: a channel that was made or changed just now could make it valid. */
  | { kind: 'invalid'; invalidParams: InvalidParam[]; dependsOnChannels: boolean };

export interface ParseContext {
  findChannel: (name: string) => Channel | undefined;
  /** Milliseconds since 1970. */
  now: number;
  leewaySeconds: number;
}

interface Characteristic {
  /** As it is sent. */
  name: string;
  value: string;
}

const channelRules: TextRules = { maxLength: 50 };
const textRules: TextRules = { maxLength: 100 };
const sourceRules = { maxLength: 100, isOptional: true };
const valueRules: TextRules = { maxLength: 1000, mayBeBlank: true };
const optional = { isOptional: true };

const fieldNames = [
  'kanaal',
  'hoofdObject',
  'resource',
  'resourceUrl',
  'actie',
  'aanmaakdatum',
  'kenmerken',
  'source',
] as const;
type FieldName = (typeof fieldNames)[number];

/** Both spellings a publisher may use → ours. */
const fieldOf = new Map<string, FieldName>(
  fieldNames.flatMap((name) => [
    [name, name],
    [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), name],
  ]),
);

/**
 * Checks and normalizes a publication: trimmed, UTC, unknown fields dropped, in the publisher's order. `kenmerken` is always
 * there, because receivers fail without it. Hot path: a few microseconds.
 */
export function parseNotification(raw: JsonObject, { findChannel, now, leewaySeconds }: ParseContext): ParseResult {
  const fields = new FieldReader(raw);
  const kanaal = fields.text('kanaal', channelRules);
  const hoofdObject = fields.url('hoofdObject');
  const resource = fields.text('resource', textRules);
  const resourceUrl = fields.url('resourceUrl');
  const actie = fields.text('actie', textRules);
  const created = readCreationTime(fields, now + leewaySeconds * 1000);
  const source = fields.text('source', sourceRules);
  const characteristics = readCharacteristics(fields);

  const isReadable = fields.invalidParams.length === 0;
  const channel = kanaal === undefined ? undefined : findChannel(kanaal);
  if (kanaal !== undefined && !channel) fields.refuse('kanaal', 'message_kanaal', 'There is no such kanaal.');
  if (
    channel &&
    !areNamesConsistent(new Set(characteristics.keys()), channel.canonicalFilters) &&
    characteristics.size > 0
  ) {
    const reason = `The names do not fit the filters of the kanaal (${channel.filters.join(', ')}).`;
    fields.refuse('kenmerken', 'kenmerken_inconsistent', reason);
  }
  if (!channel || !created || fields.invalidParams.length > 0) {
    return { kind: 'invalid', invalidParams: fields.invalidParams, dependsOnChannels: isReadable };
  }

  const values = { kanaal, hoofdObject, resource, resourceUrl, actie, aanmaakdatum: created.text, source };
  return {
    kind: 'parsed',
    notification: {
      channel,
      characteristics: new Map(Array.from(characteristics, ([name, { value }]) => [name, value])),
      hoofdObject: hoofdObject!,
      resource: resource!,
      resourceUrl: resourceUrl!,
      actie: actie!,
      createdAt: created.ms,
      body: writeBody(raw, values, characteristics),
    },
  };
}

function readCreationTime(fields: FieldReader, latestMs: number): Moment | undefined {
  const text = fields.text('aanmaakdatum');
  if (text === undefined) return undefined;
  const moment = readMoment(text);
  if (!moment) fields.refuse('aanmaakdatum', 'invalid', 'Not a date and time of ISO 8601.');
  else if (moment.ms > latestMs) fields.refuse('aanmaakdatum', 'future_not_allowed', 'Lies in the future.');
  else return moment;
  return undefined;
}

/** By canonical name; if a name occurs twice, the last one counts. */
function readCharacteristics(fields: FieldReader): Map<string, Characteristic> {
  const characteristics = new Map<string, Characteristic>();
  const kenmerken = fields.dictionary('kenmerken', optional);
  if (!kenmerken) return characteristics;
  for (const name of Object.keys(kenmerken)) {
    if (!isStorable(name)) fields.refuse('kenmerken', 'invalid', 'A name holds U+0000 or half a surrogate pair.');
    const value = fields.accept(`kenmerken.${name}`, readText(kenmerken[name], valueRules));
    if (value !== undefined) characteristics.set(canonicalName(name), { name: outgoingName(name), value });
  }
  return characteristics;
}

/** Not by JSON.stringify of an object: the order stays, and a name such as `__proto__` is an ordinary name. */
function writeBody(
  raw: JsonObject,
  values: Record<Exclude<FieldName, 'kenmerken'>, string | undefined>,
  characteristics: ReadonlyMap<string, Characteristic>,
): string {
  const names = new Set<FieldName>();
  for (const key of Object.keys(raw)) {
    const name = fieldOf.get(key);
    if (name !== undefined) names.add(name);
  }
  names.add('kenmerken');
  let text = '';
  for (const name of names) {
    const value = name === 'kenmerken' ? writeCharacteristics(characteristics) : JSON.stringify(values[name]);
    text += `${text === '' ? '{' : ','}"${name}":${value}`;
  }
  return `${text}}`;
}

function writeCharacteristics(characteristics: ReadonlyMap<string, Characteristic>): string {
  let text = '';
  for (const { name, value } of characteristics.values()) {
    text += `${text === '' ? '{' : ','}${JSON.stringify(name)}:${JSON.stringify(value)}`;
  }
  return text === '' ? '{}' : `${text}}`;
}
