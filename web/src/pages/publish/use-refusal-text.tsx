import type { ReactNode } from 'react';
import type { InvalidParam } from '../../api/problem.ts';
import { InEnglish } from '../../parts/in-english.tsx';
import { usePublishTexts } from './texts.ts';

/** A refusal of the API in the language of the viewer, as far as its code is known. */
export function useRefusalText(): (refusal: InvalidParam | undefined) => ReactNode {
  const t = usePublishTexts();
  return (refusal) => {
    if (refusal === undefined) return undefined;
    const { name, code, reason } = refusal;
    switch (code) {
      case 'required':
      case 'blank':
      case 'null':
        return t('required');
      case 'max_length':
        return t('tooLong');
      case 'future_not_allowed':
        return t('future');
      case 'message_kanaal':
        return t('noSuchChannel');
      case 'kenmerken_inconsistent':
        return t('inconsistent');
      // The page itself refuses these.
      case 'not-ascii':
      case 'not-a-time':
        return reason;
      default:
        if (/^(hoofdObject|resourceUrl)$/.test(name) && code === 'invalid') return t('notUrl');
        return <InEnglish>{reason}</InEnglish>;
    }
  };
}
