import * as z from 'zod';
import { uuid } from '../infra/http/input-parts.js';
import { pageQuery } from '../infra/http/page-query.js';
import { fromCursor } from './explanation-cursor.js';

export const explainQuery = z.strictObject({
  subscription: uuid().optional().describe('UUID of the only subscription to explain.'),
  ...pageQuery('explanations', fromCursor),
});
