/**
 * Limits of what a caller, or a configuration, says of a channel. Channels of before there was a limit may exceed it.
 * Lengths are in characters (code points).
 */
export const longestChannelName = 50;
export const longestDocumentationLink = 200;
export const longestFilterName = 100;
/** Each publication and each subscription is compared with all of them. */
export const mostFilters = 100;
