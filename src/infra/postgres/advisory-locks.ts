/**
 * The numbers of our advisory locks, which have one space in a database. They are arbitrary, but have to be the same in
 * every process, also in one of the version before.
 */
export const advisoryLocks = {
  migrations: 727_272,
  partitions: 727_273,
  droppingDays: 727_274,
  makingMonths: 727_275,
  droppingMonths: 727_276,
  digests: 727_277,
  liveEvents: 727_278,
  liningUp: 727_279,
} as const;
