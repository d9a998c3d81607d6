import { Injectable } from '@nestjs/common';
import { isDeepStrictEqual } from 'node:util';
import { ChannelAllowance } from '../channels/channel-allowance.service.js';
import { ChannelChanges, type ChannelInput } from '../channels/channel-changes.js';
import { shareOf } from '../channels/channel-share.js';
import { ChannelEntity } from '../channels/channel.entity.js';
import { canonicalName } from '../channels/filter-names.js';
import { unknownCharacteristics } from '../channels/unknown-characteristics.js';
import type { ConfiguredChannel } from './configuration-schema.js';
import { fieldsThatDiffer } from './fields-that-differ.js';
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

interface Fields {
  documentationLink: string;
  filters: string[];
  deduplication: { fields: string[]; withinSeconds: number } | null;
  maxAgeSeconds: number | null;
  bodyRetentionDays: number | null;
}

const fieldsOf = (channel: ChannelEntity): Fields => ({
  documentationLink: channel.documentationLink,
  filters: channel.filters,
  deduplication: channel.deduplicateBy && {
    fields: channel.deduplicateBy,
    withinSeconds: channel.deduplicateWithin,
  },
  maxAgeSeconds: channel.maxAge,
  bodyRetentionDays: channel.bodyRetentionDays,
});

const ofNew: Fields = {
  documentationLink: '',
  filters: [],
  deduplication: null,
  maxAgeSeconds: null,
  bodyRetentionDays: null,
};

/** Channels are not removed: publishers make them too. */
@Injectable()
export class ChannelsSection implements Section {
  constructor(private readonly allowance: ChannelAllowance) {}

  async plan(planning: Planning): Promise<Planned> {
    const found = await planning.manager.find(ChannelEntity);
    const known = new Map(found.map((one) => [one.name, one]));
    const stored = new Map([...known].filter(([, one]) => isThere(one)));
    for (const [name, channel] of stored) know(planning, name, channel.filters);
    const entries = planning.configuration.channels;
    if (!entries) return nothingPlanned;
    const after = new Map<string, ChannelInput>(stored);
    const seen = new Set<string>();
    const steps: Step[] = [];
    for (const entry of entries) {
      if (!planning.isFirst(seen, entry.wanted.name, `${entry.name}.name`)) continue;
      const step = this.planEntry(planning, entry, known.get(entry.wanted.name), after);
      if (step) steps.push(step);
    }
    for (const { code, reason } of this.allowance.refusals(shareOf(stored.values()), shareOf(after.values())))
      planning.refuse('channels', code, reason);
    const others = [...stored.keys()].filter((name) => !seen.has(name)).toSorted();
    const unnamed = { count: others.length, first: others.slice(0, mostUnnamed) };
    return { ...oneByOne(steps), unchanged: seen.size - steps.length, unnamed };
  }

  /**
   * @param known the channel as it is, or as it was when it was removed
   * @param all channels as they will be; gets this one
   * @returns undefined: it is as it should be
   */
  private planEntry(
    planning: Planning,
    { name, wanted }: Entry<ConfiguredChannel>,
    known: ChannelEntity | undefined,
    all: Map<string, ChannelInput>,
  ): Step | undefined {
    const stored = known && isThere(known) ? known : undefined;
    // Of one that was removed, the days stay.
    const before = stored ? fieldsOf(stored) : { ...ofNew, bodyRetentionDays: known?.bodyRetentionDays ?? null };
    const { documentationLink, filters, deduplication, maxAgeSeconds, bodyRetentionDays } = wanted;
    const after: Fields = {
      documentationLink: documentationLink ?? before.documentationLink,
      filters: filters ?? before.filters,
      deduplication: deduplication === undefined ? before.deduplication : deduplication,
      maxAgeSeconds: maxAgeSeconds === undefined ? before.maxAgeSeconds : maxAgeSeconds,
      bodyRetentionDays: bodyRetentionDays === undefined ? before.bodyRetentionDays : bodyRetentionDays,
    };
    know(planning, wanted.name, after.filters);
    all.set(wanted.name, { name: wanted.name, ...after });
    // Only what is to change: publishers can take away filters by a call.
    const named = planning.channels.get(wanted.name)!;
    if (!isDeepStrictEqual([before.filters, before.deduplication], [after.filters, after.deduplication]))
      for (const param of unknownCharacteristics(after.deduplication?.fields ?? [], named))
        planning.refuse(`${name}.${param.name}`, param.code, param.reason);
    const shown = (fields: Fields) => ({ fields: { ...fields }, secrets: {} });
    const fields = fieldsThatDiffer(stored ? shown(before) : null, shown(after));
    if (stored && fields.length === 0) return undefined;
    const { deduplication: sameBy, maxAgeSeconds: oldest, bodyRetentionDays: days, ...described } = after;
    return {
      change: {
        section: 'channels',
        action: stored ? 'change' : 'create',
        key: wanted.name,
        about: null,
        fields,
        notes: [],
      },
      carryOut: async (manager, version) => {
        const changing = new ChannelChanges(manager, version);
        const rules = { deduplication: sameBy, maxAgeSeconds: oldest, bodyRetentionDays: days };
        if (stored) await changing.update(stored.id, { ...described, ...rules });
        else await changing.create({ name: wanted.name, ...described, ...rules });
      },
    };
  }
}

const isThere = ({ deletedAt }: ChannelEntity): boolean => deletedAt === null;

function know({ channels }: Planning, name: string, filters: readonly string[]): void {
  channels.set(name, { filters, canonicalFilters: new Set(filters.map(canonicalName)) });
}
