import type { InvalidParam } from '../../api/problem.ts';
import { usePublishTexts } from './texts.ts';

/** A refusal of the API in the language of the viewer, as far as its code is known. */
export function useRefusalText(): (refusal: InvalidParam | undefined) => string | undefined {
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
      default:
        return /^(hoofdObject|resourceUrl)$/.test(name) && code === 'invalid' ? t('notUrl') : reason;
    }
  };
}
