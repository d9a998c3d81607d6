import type { components } from '../../../generated/admin-api.d.ts';

export type OpenEndpoint = components['schemas']['OpenEndpoint'];
export type PacedSubscription = components['schemas']['PacedSubscription'];
