/** The names of a type of the API, in the order in which they are given: the compiler insists on all of them. */
export const namesOf = <K extends string>(all: Record<K, true>): K[] => Object.keys(all) as K[];
