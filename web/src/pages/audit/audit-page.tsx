import { PageHeader } from '../../parts/page-header.tsx';

export function AuditPage() {
  return <PageHeader title="Audit" />;
}
