import { getMetadataArgsStorage, type EntityManager } from 'typeorm';
import { queryOf } from '../infra/postgres/query-of.js';
import { rowsOf, statement, type Column } from '../infra/postgres/statement.js';
import { SubscriptionEntity } from './subscription.entity.js';

/** Its version is that of the change. */
export type SubscriptionColumns = Omit<SubscriptionEntity, 'id' | 'version'>;
type Name = keyof SubscriptionColumns;

/** As the entity has them. */
const columns = new Map(
  getMetadataArgsStorage()
    .filterColumns(SubscriptionEntity)
    .filter(({ propertyName }) => propertyName !== 'id' && propertyName !== 'version')
    .map(({ propertyName, options }) => [
      propertyName as Name,
      { name: options.name ?? propertyName, type: options.type as string },
    ]),
);

/** A subscription that is there, and what it gets. */
interface ChangedColumns {
  id: string;
  changed: Partial<SubscriptionColumns>;
}

const allNames = [...columns.keys()];
/** Postgres says when they were made. */
const namesOfNew = allNames.filter((name) => name !== 'createdAt');

const rows = (names: readonly Name[]) =>
  rowsOf<ChangedColumns>('item', {
    id: ['uuid', ({ id }) => id],
    ...Object.fromEntries(names.map((name) => [nameInSql(name), columnOf(name)])),
  });

const nameInSql = (name: Name): string => columns.get(name)!.name;

const columnOf = (name: Name): Column<ChangedColumns> => {
  const { type } = columns.get(name)!;
  return [type, ({ changed }) => asParameter(type, changed[name])];
};

function asParameter(type: string, value: SubscriptionColumns[Name] | undefined): unknown {
  if (value === null || value === undefined) return null;
  if (type === 'json') return JSON.stringify(value);
  return value instanceof Date ? value.toISOString() : value;
}

const newRows = rows(namesOfNew);
const namesInSql = namesOfNew.map(nameInSql).join(', ');
const insertItems = statement(
  'insert-subscriptions',
  `INSERT INTO subscription (id, ${namesInSql}, version) SELECT id, ${namesInSql}, $version::bigint FROM ${newRows.from}
   RETURNING id, created_at AS "createdAt"`,
);

/**
 * All of them in one statement. They get the time of their creation.
 * @throws a unique violation when there is one of their ids
 */
export async function insertSubscriptions(
  manager: EntityManager,
  version: number,
  entities: readonly SubscriptionEntity[],
): Promise<void> {
  if (entities.length === 0) return;
  const items = entities.map((entity) => ({ id: entity.id, changed: entity }));
  const created = await queryOf(manager)<{ id: string; createdAt: Date }>(insertItems, {
    ...newRows.bind(items),
    version,
  });
  const createdAt = new Map(created.map((row) => [row.id, row.createdAt]));
  for (const entity of entities) entity.createdAt = createdAt.get(entity.id)!;
}

/**
 * Those that get the same columns in one statement. No other column is written: a secret may be encrypted anew at this
 * moment.
 */
export async function updateSubscriptions(
  manager: EntityManager,
  version: number,
  items: readonly ChangedColumns[],
): Promise<void> {
  const byColumns = new Map<string, { names: Name[]; items: ChangedColumns[] }>();
  for (const item of items) {
    const names = allNames.filter((name) => item.changed[name] !== undefined);
    const key = names.join();
    const alike = byColumns.get(key) ?? { names, items: [] };
    byColumns.set(key, alike);
    alike.items.push(item);
  }
  for (const { names, items: alike } of byColumns.values()) {
    const item = rows(names);
    const assignments = names.map((name) => `${nameInSql(name)} = item.${nameInSql(name)}, `).join('');
    const update = statement(
      'update-subscriptions',
      `UPDATE subscription SET ${assignments}version = $version::bigint FROM ${item.from} WHERE subscription.id = item.id`,
    );
    await queryOf(manager)(update, { ...item.bind(alike), version });
  }
}
