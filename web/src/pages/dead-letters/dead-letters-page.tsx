import { PageHeader } from '../../parts/page-header.tsx';

export function DeadLettersPage() {
  return <PageHeader title="Dead letters" />;
}
