import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

@Entity('application')
export class ApplicationEntity {
  @PrimaryColumn('uuid')
  id: string;

  @Column('text', { name: 'client_id' })
  clientId: string;

  @Column('text')
  label: string;

  @Column('text')
  secret: string;

  /** When it was last changed; null: never, as far as is known. */
  @Column('timestamptz', { name: 'secret_set_at', nullable: true })
  secretSetAt: Date | null;

  @Column('text', { array: true })
  scopes: string[];

  @Column('boolean', { name: 'is_superuser' })
  isSuperuser: boolean;

  @Column('text', { name: 'alert_email', nullable: true })
  alertEmail: string | null;

  @Column('bigint')
  version: string | number;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @Column('timestamptz', { name: 'deleted_at', nullable: true })
  deletedAt: Date | null;
}
