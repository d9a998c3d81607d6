import { Confirm } from '../parts/confirm.tsx';
import { useSignInTexts } from './sign-in-texts.ts';

interface Props {
  opened: boolean;
  onClose: () => void;
  onConfirm: () => Promise<void>;
}

/** For an administrator: everybody has to sign in again. */
export function EndAllSessions(props: Props) {
  const t = useSignInTexts();
  return (
    <Confirm {...props} title={t('everybodyTitle')} action={t('everybodyAction')}>
      {t('everybodyDetail')}
    </Confirm>
  );
}
