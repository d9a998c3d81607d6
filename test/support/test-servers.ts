/** Where the private servers are; `npm test` sets these, `npm run servers` prints them for a run by hand. */
export const testServers = {
  databaseUrl: () => required('TEST_DATABASE_URL'),
  amqpUrl: () => required('TEST_AMQP_URL'),
  redisUrl: () => required('TEST_REDIS_URL'),
  /** A test's database is a copy of it: migrated-databases.mjs. */
  databaseTemplate: () => process.env.TEST_DATABASE_TEMPLATE ?? 'template1',
};

function required(name: string): string {
  const value = process.env[name];
  if (!value)
    throw new Error(`${name} is not set: run the tests with \`npm test\`, or start \`npm run servers\` first.`);
  return value;
}
