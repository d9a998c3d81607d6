// Writes admin-openapi.json, the document of the admin API, from the compiled controllers beside it: no server runs.
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compiled, projectDirectory } from './ready-to-run.mjs';

/**
 * @param {string} directory `dist`, or one that becomes it
 * @returns the file
 */
export async function writeAdminOpenApi(directory) {
  await import('reflect-metadata');
  const [{ AppModule }, { readSettings }, { describeApis }, { adminApi }, { notificatiesApi }] = await Promise.all(
    [
      'app.module.js',
      'config/settings.js',
      'openapi/describe-apis.js',
      'openapi/admin-api.js',
      'nrc/notificaties-api.js',
    ].map((path) => compiled(path, directory)),
  );
  // In preview nothing is made of what the modules provide, so what they get does not matter.
  const foundation = { settings: readSettings({}), postgres: {}, cipher: {}, siblings: {} };
  const app = await NestFactory.create(AppModule.with(foundation), new FastifyAdapter(), {
    preview: true,
    logger: ['error'],
    abortOnError: false,
  });
  const [, document] = describeApis(app, [notificatiesApi, adminApi]);
  const file = join(projectDirectory, directory, 'admin-openapi.json');
  writeFileSync(file, JSON.stringify(document));
  return file;
}
