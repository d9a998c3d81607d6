/**
 * Limits of what a caller, or a configuration, says of a subscription. Subscriptions of before there was a limit may
 * exceed it. Lengths are in characters (code points) where nothing else is said.
 */

/**
 * In bytes: the address of an endpoint is one, and a row of an index has room for 2704. Longer than the standard's
 * first version allowed: callback URLs carry keys, and access tokens outgrew 1000 characters.
 */
export const longestCallbackUrl = 2048;
/**
 * Entries of a subscription. Those that demand different names are looked up one by one for each publication on their
 * channel.
 */
export const mostEntries = 500;
/** Of one entry. */
export const mostDemands = 100;
/** The name of a characteristic that an entry demands. */
export const longestDemandedName = 1000;
export const longestDemandedValue = 1000;
