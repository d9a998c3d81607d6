/** @returns how many turns of the event loop others had meanwhile */
export async function turnsDuring<T>(work: Promise<T>): Promise<{ turns: number; result: T }> {
  let [turns, isOver] = [0, false];
  const count = () => {
    if (isOver) return;
    turns++;
    setImmediate(count);
  };
  setImmediate(count);
  const result = await work.finally(() => (isOver = true));
  return { turns, result };
}
