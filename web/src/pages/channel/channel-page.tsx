import { PageHeader } from '../../parts/page-header.tsx';

export function ChannelPage() {
  return <PageHeader title="Channel" />;
}
