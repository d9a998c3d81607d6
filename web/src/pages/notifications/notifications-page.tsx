import { PageHeader } from '../../parts/page-header.tsx';

export function NotificationsPage() {
  return <PageHeader title="Notifications" />;
}
