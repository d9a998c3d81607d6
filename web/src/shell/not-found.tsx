import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { EmptyState } from '../parts/empty-state.tsx';
import { useShellTexts } from './texts.ts';

export function NotFound() {
  const t = useShellTexts();
  return (
    <EmptyState
      title={t('notFound')}
      action={<Button renderRoot={(props) => <Link to="/overview" {...props} />}>{t('toOverview')}</Button>}
    >
      {t('notFoundDetail')}
    </EmptyState>
  );
}
