import { longestChannelName } from '../channels/channel-limits.js';
import type { Channel } from '../channels/channel.js';
import { areNamesConsistent, canonicalName, listedNames, outgoingName } from '../channels/filter-names.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import type { InvalidParam } from '../infra/http/problem.js';
import { isStorable } from '../infra/postgres/storable-text.js';
import { FieldReader, readText, snakeCaseOf, type TextRules } from '../nrc/fields.js';
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

/** One that its channel, as it is now, does not fit, or whose channel is not there: as it would be. */
export type Misfit = Omit<ParsedNotification, 'channel'> & { channel: Pick<Channel, 'name'> };

export const noSuchChannel = { name: 'kanaal', code: 'message_kanaal', reason: 'There is no such kanaal.' };

export type ParseResult =
  | { kind: 'parsed'; notification: ParsedNotification }
  /**
   * `dependsOnChannels`: a channel that was made or changed just now could make it valid. `dependsOnClock`: a clock
   * that is further than `now` could. `misfit`: where nothing is wrong but that its channel is not there, or that its
   * characteristics do not fit the filters of its channel.
   */
  | {
      kind: 'invalid';
      invalidParams: InvalidParam[];
      dependsOnChannels: boolean;
      dependsOnClock: boolean;
      misfit: Misfit | undefined;
    };

export interface ParseContext {
  findChannel: (name: string) => Channel | undefined;
  /** Milliseconds since 1970. */
  now: number;
  leewaySeconds: number;
}

/** Both by canonical name. */
interface Characteristics {
  values: Map<string, string>;
  /** As the publisher spelt them. */
  names: Map<string, string>;
}

const channelRules: TextRules = { maxLength: longestChannelName };
const textRules: TextRules = { maxLength: 100 };
const sourceRules = { maxLength: 100, isOptional: true };
const valueRules: TextRules = { maxLength: 1000, mayBeBlank: true };
/**
 * Ten times the filters that a channel may have. The standard names no limit, and with the 75,000 names that fit into a
 * body a refused publication took a fifth of a second in which the process did nothing else.
 */
export const mostCharacteristics = 1000;

/**
 * Two clocks that are kept right are not the same: a publisher that writes the time of this moment may be ahead of
 * Postgres' clock, and this process knows that one only as exactly as its last answer was quick. A notification that is
 * refused with 400 is lost.
 */
export const clocksDifferByMs = 500;

const liesAhead = 'future_not_allowed';

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
    [snakeCaseOf(name), name],
  ]),
);

/**
 * Checks and normalizes a publication: trimmed, UTC, unknown fields dropped, in the publisher's order. `kenmerken` is
 * always there, because receivers fail without it. Hot path: a few microseconds.
 */
export function parseNotification(raw: JsonObject, { findChannel, now, leewaySeconds }: ParseContext): ParseResult {
  const fields = new FieldReader(raw);
  const kanaal = fields.text('kanaal', channelRules);
  const hoofdObject = fields.url('hoofdObject');
  const resource = fields.text('resource', textRules);
  const resourceUrl = fields.url('resourceUrl');
  const actie = fields.text('actie', textRules);
  const created = readCreationTime(fields, now + leewaySeconds * 1000 + clocksDifferByMs);
  const source = fields.text('source', sourceRules);
  const characteristics = readCharacteristics(fields);

  const isReadable = fields.invalidParams.length === 0;
  const dependsOnClock = !isReadable && fields.invalidParams.every(({ code }) => code === liesAhead);
  const channel = kanaal === undefined ? undefined : findChannel(kanaal);
  if (kanaal !== undefined && !channel) fields.refuse(noSuchChannel.name, noSuchChannel.code, noSuchChannel.reason);
  const { values } = characteristics;
  if (channel && values.size > 0 && !areNamesConsistent(values, channel.canonicalFilters)) {
    const reason = `The names do not fit the filters of the kanaal (${listedNames(channel.filters)}).`;
    fields.refuse('kenmerken', 'kenmerken_inconsistent', reason);
  }
  const { invalidParams } = fields;
  if (!isReadable || kanaal === undefined || !created)
    return { kind: 'invalid', invalidParams, dependsOnChannels: false, dependsOnClock, misfit: undefined };

  const texts = { kanaal, hoofdObject, resource, resourceUrl, actie, aanmaakdatum: created.text, source };
  const content = {
    characteristics: values,
    hoofdObject: hoofdObject!,
    resource: resource!,
    resourceUrl: resourceUrl!,
    actie: actie!,
    createdAt: created.ms,
    body: writeBody(raw, texts, characteristics),
  };
  if (channel && invalidParams.length === 0) return { kind: 'parsed', notification: { channel, ...content } };
  const misfit = { channel: { name: kanaal }, ...content };
  return { kind: 'invalid', invalidParams, dependsOnChannels: true, dependsOnClock, misfit };
}

function readCreationTime(fields: FieldReader, latestMs: number): Moment | undefined {
  const text = fields.text('aanmaakdatum');
  if (text === undefined) return undefined;
  const moment = readMoment(text);
  if (!moment) fields.refuse('aanmaakdatum', 'invalid', 'Not a date and time of ISO 8601.');
  else if (moment.ms > latestMs) fields.refuse('aanmaakdatum', liesAhead, 'Lies in the future.');
  else return moment;
  return undefined;
}

/** If a name occurs twice, the last one counts. */
function readCharacteristics(fields: FieldReader): Characteristics {
  const characteristics = { values: new Map<string, string>(), names: new Map<string, string>() };
  const kenmerken = fields.dictionary('kenmerken', { isOptional: true, most: mostCharacteristics });
  if (!kenmerken) return characteristics;
  for (const name of Object.keys(kenmerken)) {
    if (!isStorable(name)) fields.refuse('kenmerken', 'invalid', 'A name holds U+0000 or half a surrogate pair.');
    const value = readText(kenmerken[name], valueRules);
    if (typeof value !== 'string') fields.refuse(`kenmerken.${name}`, value.code, value.reason);
    else {
      const canonical = canonicalName(name);
      characteristics.values.set(canonical, value);
      characteristics.names.set(canonical, name);
    }
  }
  return characteristics;
}

/** Not by JSON.stringify of an object: the order stays, and a name such as `__proto__` is an ordinary name. */
function writeBody(
  raw: JsonObject,
  texts: Record<Exclude<FieldName, 'kenmerken'>, string | undefined>,
  characteristics: Characteristics,
): string {
  const names = new Set<FieldName>();
  for (const key of Object.keys(raw)) {
    const name = fieldOf.get(key);
    if (name !== undefined) names.add(name);
  }
  names.add('kenmerken');
  let text = '';
  for (const name of names) {
    const value = name === 'kenmerken' ? writeCharacteristics(characteristics) : JSON.stringify(texts[name]);
    text += `${text === '' ? '{' : ','}"${name}":${value}`;
  }
  return `${text}}`;
}

function writeCharacteristics({ values, names }: Characteristics): string {
  let text = '';
  for (const [canonical, value] of values) {
    const name = nameToSend(names.get(canonical)!, names);
    text += `${text === '' ? '{' : ','}${JSON.stringify(name)}:${JSON.stringify(value)}`;
  }
  return text === '' ? '{}' : `${text}}`;
}

/**
 * `punt_x_y` would be sent as `puntXY`: beside another name that is spelt so it keeps its own spelling, since a
 * receiver reads one of two members of the same name.
 */
function nameToSend(name: string, names: Characteristics['names']): string {
  const outgoing = outgoingName(name);
  return outgoing !== name && names.get(canonicalName(outgoing)) === outgoing ? name : outgoing;
}
