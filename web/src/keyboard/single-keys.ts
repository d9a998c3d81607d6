import { useLocalStorage } from '@mantine/hooks';

/**
 * Whether keys that are one letter do something. Users who speak to a computer, or hit keys by accident, can switch
 * them off (WCAG 2.2, 2.1.4); Ctrl+K goes on working.
 */
export const useSingleKeys = () =>
  useLocalStorage<'on' | 'off'>({ key: 'heraut-single-keys', defaultValue: 'on', getInitialValueInEffect: false });
