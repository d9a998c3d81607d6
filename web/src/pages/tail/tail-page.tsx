import { PageHeader } from '../../parts/page-header.tsx';

export function TailPage() {
  return <PageHeader title="Tail" />;
}
