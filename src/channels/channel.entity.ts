import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';
import type { Channel } from './channel.js';
import { canonicalName } from './filter-names.js';

@Entity('channel')
export class ChannelEntity {
  @PrimaryColumn('uuid')
  id: string;

  @Column('text')
  name: string;

  @Column('text', { name: 'documentation_link' })
  documentationLink: string;

  @Column('text', { array: true })
  filters: string[];

  @Column('text', { name: 'deduplicate_by', array: true, nullable: true })
  deduplicateBy: string[] | null;

  @Column('int', { name: 'deduplicate_within' })
  deduplicateWithin: number;

  @Column('int', { name: 'max_age', nullable: true })
  maxAge: number | null;

  @Column('int', { name: 'body_retention_days', nullable: true })
  bodyRetentionDays: number | null;

  @Column('bigint')
  version: string | number;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  /** Removed by an operator; null: not. */
  @Column('timestamptz', { name: 'deleted_at', nullable: true })
  deletedAt: Date | null;
}

export type StoredChannel = Omit<ChannelEntity, 'version' | 'createdAt' | 'deletedAt'>;

export const channelOf = (stored: StoredChannel): Channel => ({
  id: stored.id,
  name: stored.name,
  documentationLink: stored.documentationLink,
  filters: stored.filters,
  canonicalFilters: new Set(stored.filters.map(canonicalName)),
  deduplication: stored.deduplicateBy && { fields: stored.deduplicateBy, withinSeconds: stored.deduplicateWithin },
  maxAgeSeconds: stored.maxAge,
  bodyRetentionDays: stored.bodyRetentionDays,
});
