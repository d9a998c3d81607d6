import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useDraft, type Draft, type Tagged } from './use-draft.ts';

interface Resource<T> {
  key: readonly unknown[];
  read: (signal?: AbortSignal) => Promise<Tagged<T>>;
  /** @param tag for `If-Match`; undefined: however it is now */
  write: (values: T, tag: string | undefined) => Promise<Tagged<T>>;
  /** What else shows it. */
  alsoChanges?: readonly (readonly unknown[])[];
}

export interface Saving<T> {
  draft: Draft<T> | undefined;
  /** Why it could not be read. */
  readError: unknown;
  retry: () => void;
  /** For a `SaveBar`. */
  bar: { error: unknown; isSaving: boolean; onSave: () => void; onSaveOver: () => void; onDiscard: () => void };
  isSaved: boolean;
}

/** A resource that is read, typed over, and saved if nobody else has changed it. */
export function useSaving<T extends object>({ key, read, write, alsoChanges = [] }: Resource<T>): Saving<T> {
  const client = useQueryClient();
  const query = useQuery({ queryKey: key, queryFn: ({ signal }) => read(signal) });
  const draft = useDraft(query.data);
  const save = useMutation({
    mutationFn: ({ values, tag }: { values: T; tag: string | undefined }) => write(values, tag),
    onSuccess: (saved) => {
      client.setQueryData(key, saved);
      draft?.discard();
      for (const other of alsoChanges) void client.invalidateQueries({ queryKey: other });
    },
  });
  const submit = (tag: string | undefined) => draft && save.mutate({ values: draft.values, tag });
  return {
    draft,
    readError: query.error,
    retry: () => void query.refetch(),
    isSaved: save.isSuccess,
    bar: {
      error: save.error,
      isSaving: save.isPending,
      onSave: () => submit(draft?.tag),
      onSaveOver: () => void query.refetch().then(({ data }) => submit(data?.tag)),
      onDiscard: () => {
        save.reset();
        draft?.discard();
        void query.refetch();
      },
    },
  };
}
