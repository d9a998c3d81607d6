import { PageHeader } from '../../parts/page-header.tsx';

export function NotificationPage() {
  return <PageHeader title="Notification" />;
}
