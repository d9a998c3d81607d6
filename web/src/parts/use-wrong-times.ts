import { useState } from 'react';

/**
 * The time fields of a form or of a list that have something that is no moment: nothing may be done by them meanwhile.
 */
export interface WrongTimes {
  isWrong: boolean;
  /** @returns the callback that the field of that name takes as `onWrong` */
  note: (name: string) => (isWrong: boolean) => void;
  /** Part of the key of each field: another one empties it, also of what never became its value. */
  generation: number;
  /** Empties them. */
  empty: () => void;
}

export function useWrongTimes(): WrongTimes {
  const [wrong, setWrong] = useState<readonly string[]>([]);
  const [generation, setGeneration] = useState(0);
  return {
    isWrong: wrong.length > 0,
    note: (name) => (isWrong) =>
      setWrong((before) => {
        if (before.includes(name) === isWrong) return before;
        return isWrong ? [...before, name] : before.filter((each) => each !== name);
      }),
    generation,
    empty: () => setGeneration((before) => before + 1),
  };
}
