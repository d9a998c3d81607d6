/** Resolves when all that wait for what is resolved by now have been told. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
