import { PageHeader } from '../../parts/page-header.tsx';

export function SubscriptionsPage() {
  return <PageHeader title="Subscriptions" />;
}
