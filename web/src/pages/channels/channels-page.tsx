import { PageHeader } from '../../parts/page-header.tsx';

export function ChannelsPage() {
  return <PageHeader title="Channels" />;
}
