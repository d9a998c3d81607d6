import { defineTexts } from '../../i18n/i18n.ts';

export const useSettingsTexts = defineTexts(
  'settings',
  {
    title: 'Settings',
    description: 'What holds for the whole installation.',
    'retry-policy': 'Retry policy',
    retention: 'Retention',
    configuration: 'Configuration',
    installation: 'Installation',
  },
  {
    title: 'Instellingen',
    description: 'Wat voor de hele installatie geldt.',
    'retry-policy': 'Herhaalbeleid',
    retention: 'Bewaren',
    configuration: 'Configuratie',
    installation: 'Installatie',
  },
);
