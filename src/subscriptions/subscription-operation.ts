/* Texts that the operations of the admin API about one subscription share. */

export const unknownSubscription = { 404: 'There is no such subscription.' };

/** Of one that changes a subscription, and shows it as it is then. */
export const changesSubscription = { hasEntityTag: true, honoursIfMatch: true };
