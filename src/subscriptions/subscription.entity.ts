import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';
import type { DeliveryGuarantee, Ordering, SubscribedChannel } from './subscription.js';

@Entity('subscription')
export class SubscriptionEntity {
  @PrimaryColumn('uuid')
  id: string;

  @Column('text', { name: 'owner_client_id' })
  ownerClientId: string;

  @Column('text', { name: 'callback_url' })
  callbackUrl: string;

  @Column('text')
  auth: string;

  @Column('text', { nullable: true })
  credentials: string | null;

  @Column('json')
  channels: readonly SubscribedChannel[];

  @Column('text', { name: 'delivery_guarantee', nullable: true })
  deliveryGuarantee: DeliveryGuarantee | null;

  @Column('timestamptz', { name: 'disabled_at', nullable: true })
  disabledAt: Date | null;

  @Column('timestamptz', { name: 'paused_at', nullable: true })
  pausedAt: Date | null;

  @Column('float8', { name: 'timeout_seconds', nullable: true })
  timeoutSeconds: number | null;

  @Column('int', { name: 'max_concurrency', nullable: true })
  maxConcurrency: number | null;

  @Column('float8', { name: 'rate_per_second', nullable: true })
  ratePerSecond: number | null;

  @Column('text')
  ordering: Ordering;

  @Column('text', { name: 'alert_email', nullable: true })
  alertEmail: string | null;

  @Column('bigint')
  version: string | number;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @Column('timestamptz', { name: 'deleted_at', nullable: true })
  deletedAt: Date | null;
}
