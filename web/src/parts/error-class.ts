import type { components } from '../../generated/admin-api.d.ts';
import { defineTexts } from '../i18n/i18n.ts';

/** As the API has them: one that is new there does not compile here without its texts. */
export type ErrorClass = components['schemas']['DeadLetterGroup']['errorClass'];

const english: Record<ErrorClass, string> = {
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
};

/** In the order in which they are shown. */
export const errorClasses = Object.keys(english) as ErrorClass[];

/** Why a delivery has not arrived, in a few words. */
export const useErrorClassTexts = defineTexts<ErrorClass>('error-class', english, {
  timeout: 'geen antwoord op tijd',
  connection: 'geen verbinding',
  tls: 'TLS mislukt',
  'refused-address': 'adres niet toegestaan',
  'status-4xx': 'antwoordde 4xx',
  'status-5xx': 'antwoordde 5xx',
  'status-other': 'antwoordde iets anders',
  expired: 'te oud',
  credentials: 'inloggegevens',
  other: 'iets anders',
});
