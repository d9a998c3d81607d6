import * as z from 'zod';
import { pageQuery } from '../infra/http/page-query.js';
import { fromCursor } from './explanation-cursor.js';

export const explainQuery = z.strictObject({
  subscription: z.guid().toLowerCase().optional().describe('UUID of the only subscription to explain.'),
  ...pageQuery('explanations', fromCursor),
});
