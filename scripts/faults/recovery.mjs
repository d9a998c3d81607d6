/**
 * Of scenarios that kill processes. docs/guarantees.md promises a recovery within 20 seconds at the most, of which a
 * machine that is very busy has made forty. The lease is the default, and longer than a scenario waits for the end of
 * all deliveries: nothing that a killed process had can come back by it alone unnoticed.
 */
export const recovery = { settings: { DELIVERY_LEASE_MS: '180000' }, recoversWithinMs: 90_000 };
