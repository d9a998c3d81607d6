import { PageHeader } from '../../parts/page-header.tsx';

export function PublishPage() {
  return <PageHeader title="Publish" />;
}
