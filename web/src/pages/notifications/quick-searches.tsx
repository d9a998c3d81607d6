import { Anchor, Group } from '@mantine/core';
import { useLayoutEffect, useRef } from 'react';
import { AnchorLink } from '../../parts/links.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { useSearchTexts } from './search-texts.ts';

const searches = [
  ['quickFailed', { state: 'failed' }],
  ['quickWaiting', { state: 'waiting' }],
  ['quickUnmatched', { unmatched: 'true' }],
] as const;

/**
 * Links to searches that are often wanted. They are there while nothing is sought.
 * @param onGone the links have gone, and the focus with them
 */
export function QuickSearches({ onGone }: { onGone: () => void }) {
  const t = useSearchTexts();
  const [, set] = useUrlState();
  const list = useRef<HTMLDivElement>(null);
  // Before they are taken from the document: it does not know any more where the focus was.
  useLayoutEffect(
    () => () => {
      if (list.current?.contains(document.activeElement)) onGone();
    },
    [],
  );
  return (
    <Group
      ref={list}
      gap="md"
      mb="xs"
      component="ul"
      aria-label={t('quick')}
      style={{ listStyle: 'none', padding: 0, margin: 0 }}
    >
      {searches.map(([text, search]) => (
        <li key={text}>
          <AnchorLink size="sm" to="." search={search}>
            {t(text)}
          </AnchorLink>
        </li>
      ))}
      <li>
        <Anchor
          size="sm"
          component="button"
          onClick={() => set({ acceptedFrom: new Date(Date.now() - 3_600_000).toISOString() }, true)}
        >
          {t('quickHour')}
        </Anchor>
      </li>
    </Group>
  );
}
