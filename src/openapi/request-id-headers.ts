import { SetMetadata } from '@nestjs/common';
import * as z from 'zod';

const noted = Symbol('notes changes under a request id');

/** Of a controller whose changes are noted in the audit log: each answer has the id that they are noted under. */
export const NotesRequestId = () => SetMetadata(noted, true);

export const notesRequestId = (controller: object): boolean => Reflect.getMetadata(noted, controller) === true;

/** Of the request, as `authorOf` reads it (src/auth/author.interceptor.ts). */
export const requestIdHeader = z
  .string()
  .max(128)
  .regex(/^[!-~]+$/)
  .optional()
  .describe('Id under which the audit log has what this request changes. Any other than such a text counts as none.');

export const answeredRequestIdHeader = z
  .string()
  .describe('Id under which the audit log has what was changed: that of the request, else a new one.');
