import { notifications, type NotificationData } from '@mantine/notifications';

/** Says that something was done. @returns the id of the notice */
export const told = (message: NotificationData['message'], more: Partial<NotificationData> = {}): string =>
  show({ color: 'green', withBorder: true, ...more, message });

/** Says that it was not, until somebody closes the notice. */
export const toldFailure = (message: NotificationData['message'], more: Partial<NotificationData> = {}): string =>
  show({ color: 'red', withBorder: true, autoClose: false, ...more, message });

/** The buttons of a notice go with it: then the focus returns to where it was when the notice came. */
function show(notice: NotificationData): string {
  const before = document.activeElement;
  return notifications.show({
    ...notice,
    onClose: () => {
      if (!document.activeElement?.closest('.mantine-Notification-root')) return;
      const next = before?.isConnected && before !== document.body ? before : document.querySelector('main');
      if (next instanceof HTMLElement) next.focus({ preventScroll: true });
    },
  });
}
