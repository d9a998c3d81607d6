import { useQueryClient } from '@tanstack/react-query';
import type { AsStored, Read } from './draft.ts';
import { useDraft, type Draft } from './use-draft.ts';

/** A resource as the API shows it, with the `ETag` that it had. */
export interface Tagged<R> {
  data: R;
  tag: string | undefined;
}

interface Options<R, T> {
  /** That of the resource: its answer is in the cache under its key. */
  query: { queryKey: readonly unknown[]; read: (signal?: AbortSignal) => Promise<Tagged<R>> };
  current: Tagged<R>;
  /** The part of it that the form shows. */
  valueOf: (resource: R, tag: string | undefined) => T;
  /** Left out: two values are the same where all of both is. */
  asStored?: AsStored<T> | undefined;
  /** @param tag for `If-Match` */
  write: (value: T, tag: string | undefined) => Promise<Tagged<R>>;
  /** Keys of other queries that show it. */
  alsoChanges?: readonly (readonly unknown[])[];
}

/** A form over a resource of the API, or over a part of it. */
export function useResourceDraft<R, T>(options: Options<R, T>): Draft<T> {
  const { query, current, valueOf, asStored, write, alsoChanges = [] } = options;
  const client = useQueryClient();
  const { queryKey, read } = query;
  const readOf = ({ data, tag }: Tagged<R>): Read<T> => ({ value: valueOf(data, tag), tag });
  return useDraft<T>({
    current: readOf(current),
    asStored,
    readAgain: async () =>
      readOf(await client.fetchQuery({ queryKey, queryFn: ({ signal }) => read(signal), staleTime: 0 })),
    save: async (value, tag) => {
      const saved = await write(value, tag);
      // An answer that is under way is from before.
      await client.cancelQueries({ queryKey, exact: true });
      client.setQueryData(queryKey, saved);
      for (const other of alsoChanges) void client.invalidateQueries({ queryKey: other });
      return readOf(saved);
    },
  });
}
