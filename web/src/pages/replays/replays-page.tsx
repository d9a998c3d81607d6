import { PageHeader } from '../../parts/page-header.tsx';

export function ReplaysPage() {
  return <PageHeader title="Replays" />;
}
