import * as z from 'zod';
import { pageQuery } from '../infra/http/page-query.js';
import { fromCursor } from './delivery-cursor.js';
import { searchQuery } from './search-query.js';

export const deliveriesQuery = z.strictObject({ ...searchQuery, ...pageQuery('deliveries', fromCursor) });
