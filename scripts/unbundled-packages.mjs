/** Packages that are not joined with others into one file: these read files beside their code. */
const withFiles = ['@electric-sql/pglite', 'swagger-ui-dist'];
/** And these are imported by Nest where they are installed; they are not. */
const notInstalled = [
  '@fastify/multipart',
  '@fastify/view',
  '@nestjs/microservices',
  '@nestjs/platform-express',
  '@nestjs/websockets',
  'class-transformer',
  'class-validator',
];

/** For esbuild's `external`. */
export const unbundledPackages = [...withFiles, ...notInstalled].flatMap((name) => [name, `${name}/*`]);

/** For esbuild's `banner`: its own `require` of what is external or built in. */
export const requireFromHere =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";
