/** A count with its noun, as `1 call`, `2 deliveries`. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
