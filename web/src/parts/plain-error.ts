import { defineTexts } from '../i18n/i18n.ts';

const useTexts = defineTexts(
  'plain-error',
  {
    ECONNREFUSED: 'Connection refused: nothing listens at this address and port',
    ECONNRESET: 'The receiver broke the connection off',
    ENOTFOUND: 'The name of this host is not known',
    EAI_AGAIN: 'The name of this host could not be looked up',
    EHOSTUNREACH: 'No way leads to this host',
    ENETUNREACH: 'No way leads to the network of this host',
  },
  {
    ECONNREFUSED: 'Verbinding geweigerd: op dit adres en deze poort luistert niets',
    ECONNRESET: 'De ontvanger verbrak de verbinding',
    ENOTFOUND: 'De naam van deze host is niet bekend',
    EAI_AGAIN: 'De naam van deze host kon niet worden opgezocht',
    EHOSTUNREACH: 'Er leidt geen weg naar deze host',
    ENETUNREACH: 'Er leidt geen weg naar het netwerk van deze host',
  },
);

const codes = ['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'] as const;

/** The code that an error of the network begins with. */
const codeOf = (error: string | null) => codes.find((code) => error?.startsWith(code));

/** Whether such an error says that no connection came about, so that nothing was sent. */
export const isNeverConnected = (error: string | null): boolean => {
  const code = codeOf(error);
  return code !== undefined && code !== 'ECONNRESET';
};

/** The meaning of an error of a call, in words; undefined where the error says it itself. */
export function useErrorMeaning(): (error: string | null) => string | undefined {
  const t = useTexts();
  return (error) => {
    const code = codeOf(error);
    return code && t(code);
  };
}

/** The error of a call in words, or as it is. */
export function usePlainError(): (error: string | null) => string | null {
  const meaningOf = useErrorMeaning();
  return (error) => meaningOf(error) ?? error;
}
