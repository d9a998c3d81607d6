import { PageHeader } from '../../parts/page-header.tsx';

export function SubscriptionPage() {
  return <PageHeader title="Subscription" />;
}
