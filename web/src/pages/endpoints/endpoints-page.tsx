import { PageHeader } from '../../parts/page-header.tsx';

export function EndpointsPage() {
  return <PageHeader title="Endpoints" />;
}
