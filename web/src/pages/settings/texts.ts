import { defineTexts } from '../../i18n/i18n.ts';

export const useSettingsTexts = defineTexts(
  'settings',
  {
    title: 'Settings',
    description: 'Settings of the whole installation.',
    'retry-policy': 'Retry policy',
    retention: 'Retention',
    configuration: 'Configuration',
    installation: 'Installation',
  },
  {
    title: 'Instellingen',
    description: 'Instellingen van de hele installatie.',
    'retry-policy': 'Herhaalbeleid',
    retention: 'Bewaren',
    configuration: 'Configuratie',
    installation: 'Installatie',
  },
);
