import { PageHeader } from '../../parts/page-header.tsx';

export function NewReplayPage() {
  return <PageHeader title="New replay" />;
}
