import { useSessionStorage } from '@mantine/hooks';
import { draftKey } from '../../api/session.ts';
import { emptyDraft, type Draft } from './draft.ts';

/**
 * The input stays when the session ends in the middle, or the page is loaded again: for as long as the tab is open, and
 * the user is the same.
 */
export function useDraft(): [Draft, (changes: Partial<Draft>) => void, () => void] {
  const [stored, store, remove] = useSessionStorage<Draft>({
    key: draftKey,
    defaultValue: emptyDraft,
    getInitialValueInEffect: false,
  });
  // A draft that a version before has stored may lack a field.
  const draft = { ...emptyDraft, ...stored };
  return [draft, (changes) => store((before) => ({ ...emptyDraft, ...before, ...changes })), remove];
}
