import { ButtonLink } from '../parts/links.tsx';
import { EmptyState } from '../parts/empty-state.tsx';
import { useShellTexts } from './texts.ts';

export function NotFound() {
  const t = useShellTexts();
  return (
    <EmptyState title={t('notFound')} action={<ButtonLink to="/overview">{t('toOverview')}</ButtonLink>}>
      {t('notFoundDetail')}
    </EmptyState>
  );
}
