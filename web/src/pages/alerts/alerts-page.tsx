import { PageHeader } from '../../parts/page-header.tsx';

export function AlertsPage() {
  return <PageHeader title="Alerts" />;
}
