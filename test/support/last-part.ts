/** Of an abonnement or a kanaal: its id. */
export const lastPart = (url: string): string => url.split('/').at(-1)!;
