import { PageHeader } from '../../parts/page-header.tsx';

export function ApplicationsPage() {
  return <PageHeader title="Applications" />;
}
