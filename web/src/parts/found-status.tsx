import { VisuallyHidden } from '@mantine/core';
import { useRouterState } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useFormat } from '../i18n/format.ts';
import { currentLanguage, defineTexts } from '../i18n/i18n.ts';

const useTexts = defineTexts(
  'found-status',
  { found: '{{shown}} found', foundMore: 'at least {{shown}} found' },
  { found: '{{shown}} gevonden', foundMore: 'ten minste {{shown}} gevonden' },
);

/** Typing pauses for so long before the list is taken for the one that is sought. */
const settledMs = 1_000;
/** A list that changes while nobody asks for another is told that often at most; each count would drown all else. */
const tellEveryMs = 60_000;

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
  const text =
    count === undefined ? '' : count === 0 ? none : t(isMore ? 'foundMore' : 'found', { shown: format.number(count) });
  return <VisuallyHidden role="status">{useTold(text)}</VisuallyHidden>;
}

/** No list yet, or one that somebody has asked for anew: the next one is told soon. */
const nothing = { text: '', asked: '', at: 0 };

/**
 * The text as it is told: late enough to be read out once, and seldom unless the address asks for something else, or
 * the viewer for another language.
 */
export function useTold(text: string): string {
  const address = useRouterState({ select: ({ location }) => location.href });
  const asked = `${currentLanguage()} ${address}`;
  const [told, tell] = useState(nothing);
  useEffect(() => {
    if (text === told.text) return undefined;
    if (text === '') return tell(nothing);
    const rest = asked === told.asked ? told.at + tellEveryMs - performance.now() : 0;
    const timer = setTimeout(() => tell({ text, asked, at: performance.now() }), Math.max(rest, settledMs));
    return () => clearTimeout(timer);
  }, [text, asked, told]);
  return told.text;
}
