import { VisuallyHidden } from '@mantine/core';
import { useFormat } from '../i18n/format.ts';
import { defineTexts } from '../i18n/i18n.ts';

const useTexts = defineTexts(
  'found-status',
  { found: '{{shown}} found', foundMore: 'at least {{shown}} found' },
  { found: '{{shown}} gevonden', foundMore: 'ten minste {{shown}} gevonden' },
);

interface Props {
  /** undefined: not known yet, or not any more. */
  count: number | undefined;
  /** There may be more than that. */
  isMore?: boolean | undefined;
  /** Said of none; as the page shows it. */
  none: string;
}

/**
 * Tells a screen reader how much a list has, which is seen otherwise. It has to stand beside the list whatever that
 * has: one that comes into the document together with its text is not read out.
 */
export function FoundStatus({ count, isMore = false, none }: Props) {
  const t = useTexts();
  const format = useFormat();
  return (
    <VisuallyHidden role="status">
      {count === undefined
        ? ''
        : count === 0
          ? none
          : t(isMore ? 'foundMore' : 'found', { shown: format.number(count) })}
    </VisuallyHidden>
  );
}
