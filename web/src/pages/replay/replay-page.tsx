import { PageHeader } from '../../parts/page-header.tsx';

export function ReplayPage() {
  return <PageHeader title="Replay" />;
}
