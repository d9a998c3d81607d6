import { defineTexts } from '../i18n/i18n.ts';
import { SecretDialog } from '../parts/secret-dialog.tsx';

const useTexts = defineTexts(
  'secret-once',
  {
    title: 'Copy this secret now',
    detail: 'It is shown this once. The receiver verifies signatures with it; if it gets lost, rotate the key.',
  },
  {
    title: 'Kopieer dit geheim nu',
    detail:
      'Het wordt alleen nu getoond. De ontvanger controleert er handtekeningen mee; raakt het zoek, vervang dan de sleutel.',
  },
);

/** The secret of a signing key that was made. */
export function SecretOnce(props: { secret: string | null; onClose: () => void }) {
  const t = useTexts();
  return <SecretDialog {...props} title={t('title')} detail={t('detail')} />;
}
