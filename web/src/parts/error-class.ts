import { defineTexts } from '../i18n/i18n.ts';

export const errorClasses = [
  'timeout',
  'connection',
  'tls',
  'refused-address',
  'status-4xx',
  'status-5xx',
  'status-other',
  'expired',
  'credentials',
  'other',
] as const;
export type ErrorClass = (typeof errorClasses)[number];

/** Why a delivery has not arrived, in a few words. */
export const useErrorClassTexts = defineTexts(
  'error-class',
  {
    timeout: 'no answer in time',
    connection: 'no connection',
    tls: 'TLS failed',
    'refused-address': 'address not allowed',
    'status-4xx': 'answered 4xx',
    'status-5xx': 'answered 5xx',
    'status-other': 'answered something else',
    expired: 'too old',
    credentials: 'credentials',
    other: 'something else',
  },
  {
    timeout: 'geen antwoord op tijd',
    connection: 'geen verbinding',
    tls: 'TLS mislukt',
    'refused-address': 'adres niet toegestaan',
    'status-4xx': 'antwoordde 4xx',
    'status-5xx': 'antwoordde 5xx',
    'status-other': 'antwoordde iets anders',
    expired: 'te oud',
    credentials: 'toegangsgegevens',
    other: 'iets anders',
  },
);
