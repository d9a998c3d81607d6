import { TbRefresh } from 'react-icons/tb';
import { ButtonLink } from '../parts/links.tsx';
import { useMay } from '../shell/session.tsx';
import { useSelectionTexts } from './texts.ts';

/**
 * For a subscription whose filters were wrong: leads to what it would have got with those that it has now, counted
 * already.
 */
export function SendMissedLink({ subscriptionId }: { subscriptionId: string }) {
  const t = useSelectionTexts();
  const may = useMay('operator');
  return (
    <ButtonLink
      variant="light"
      w="fit-content"
      disabled={!may}
      leftSection={<TbRefresh size={16} aria-hidden />}
      to="/replays/new"
      search={{ what: 'everything', subscription: subscriptionId, count: 'yes' }}
    >
      {t('sendMissed')}
    </ButtonLink>
  );
}
