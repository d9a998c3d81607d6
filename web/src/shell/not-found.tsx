import { ButtonLink } from '../parts/links.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { useShellTexts } from './texts.ts';

export function NotFound() {
  const t = useShellTexts();
  return (
    <>
      <PageHeader title={t('notFound')} description={t('notFoundDetail')} />
      <ButtonLink to="/overview">{t('toOverview')}</ButtonLink>
    </>
  );
}
