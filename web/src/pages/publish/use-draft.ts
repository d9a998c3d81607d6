import { useSessionStorage } from '@mantine/hooks';
import { emptyDraft, type Draft } from './draft.ts';

/** The input stays when the session ends in the middle, or the page is loaded again: for as long as the tab is open. */
export function useDraft(): [Draft, (changes: Partial<Draft>) => void, () => void] {
  const [stored, store, remove] = useSessionStorage<Draft>({
    key: 'heraut-publish-draft',
    defaultValue: emptyDraft,
    getInitialValueInEffect: false,
  });
  // A draft that a version before has stored may lack a field.
  const draft = { ...emptyDraft, ...stored };
  return [draft, (changes) => store((before) => ({ ...emptyDraft, ...before, ...changes })), remove];
}
