import { notifications, type NotificationData } from '@mantine/notifications';

/** Says that something was done. @returns the id of the notice */
export const told = (message: NotificationData['message'], more: Partial<NotificationData> = {}): string =>
  notifications.show({ color: 'green', withBorder: true, ...more, message });
