import { Alert, Button, Code, Group, Text } from '@mantine/core';
import { TbAlertTriangle } from 'react-icons/tb';
import { useState } from 'react';
import { ApiProblem, isUnanswered } from '../api/problem.ts';
import { OtherVersion } from '../api/load-part.ts';
import { defineTexts } from '../i18n/i18n.ts';
import { InEnglish } from './in-english.tsx';

const useTexts = defineTexts(
  'problem',
  {
    unreachable: 'Heraut does not answer',
    unreachableDetail:
      'It is down or starting, or the network is. The page comes up to date by itself when it answers again; your request may have been carried out, or not: see which, before you ask for it again.',
    onceDetail: 'It may have been done all the same. Ask for it here once more, unchanged: it is not done twice.',
    roleTooLow: 'Your role does not allow this',
    otherVersion: 'Another version of Heraut was installed',
    otherVersionDetail:
      'This part of the console is not there any more as it was. Copy what you typed, then load the page again.',
    reload: 'Load the page again',
    invalid: 'This was not accepted',
    unexpected: 'Something went wrong in this page',
    again: 'Try again',
    log: 'The log has it under {{instance}}.',
    code: 'Code',
  },
  {
    unreachable: 'Heraut antwoordt niet',
    unreachableDetail:
      'Het staat uit of start op, of het netwerk hapert. De pagina wordt vanzelf bijgewerkt zodra het weer antwoordt; uw verzoek kan zijn uitgevoerd, of niet: kijk dat na voordat u het opnieuw vraagt.',
    onceDetail: 'Het kan toch zijn gedaan. Vraag het hier nog een keer, ongewijzigd: het wordt niet twee keer gedaan.',
    roleTooLow: 'Uw rol staat dit niet toe',
    otherVersion: 'Er is een andere versie van Heraut geïnstalleerd',
    otherVersionDetail:
      'Dit deel van de console is er niet meer zoals het was. Kopieer wat u typte en laad de pagina opnieuw.',
    reload: 'Laad de pagina opnieuw',
    invalid: 'Dit is niet aangenomen',
    unexpected: 'Er ging iets mis op deze pagina',
    again: 'Probeer opnieuw',
    log: 'Het logboek heeft het onder {{instance}}.',
    code: 'Code',
  },
);

interface Props {
  error: unknown;
  /** Shows a button that tries it again. */
  onRetry?: () => void;
  /** Of what is sent by `useOnce`: it may be done, in case the answer was lost, and yet can be asked for again. */
  isOnce?: boolean;
}

/** An error with its code and the way out. */
export function ProblemAlert({ error, onRetry, isOnce = false }: Props) {
  const t = useTexts();
  const problem = error instanceof ApiProblem ? error.problem : undefined;
  // Asked for again, an error that lasts is logged under another name: the line stays, and is about the first one.
  const [first, setFirst] = useState(problem);
  if (first?.code !== problem?.code || first?.title !== problem?.title) setFirst(problem);
  // The fields say it; the sentence of the API is for programs that read its fields.
  const isOfFields = problem?.code === 'invalid' && problem.invalidParams.length > 0;
  const [title, detail] = (() => {
    if (isOfFields) return [t('invalid'), ''];
    if (isUnanswered(error)) return [t('unreachable'), t(isOnce ? 'onceDetail' : 'unreachableDetail')];
    if (problem)
      return [
        problem.code === 'role-too-low' ? t('roleTooLow') : <InEnglish>{problem.title}</InEnglish>,
        problem.detail && <InEnglish>{problem.detail}</InEnglish>,
      ];
    if (error instanceof OtherVersion) return [t('otherVersion'), t('otherVersionDetail')];
    return [t('unexpected'), error instanceof Error && error.message && <InEnglish>{error.message}</InEnglish>];
  })();
  const isOtherVersion = error instanceof OtherVersion;
  return (
    <Alert color="red" variant="light" icon={<TbAlertTriangle aria-hidden />} role="group">
      {/* That much is read aloud, and read again where it changes. */}
      <div role="alert">
        <Text size="sm" fw={700} c="var(--alert-color)" mb={4}>
          {title}
        </Text>
        {detail && (
          <Text size="sm" className="anywhere">
            {detail}
          </Text>
        )}
        {problem?.invalidParams.map(({ name, reason, code }) => (
          <Text size="sm" key={`${name} ${code}`} className="anywhere">
            <Code>{name}</Code> <InEnglish>{reason}</InEnglish>
          </Text>
        ))}
      </div>
      {problem && (
        <Text size="xs" c="dimmed" mt={4}>
          {t('code')}: <Code>{problem.code}</Code> {first?.instance && t('log', { instance: first.instance })}
        </Text>
      )}
      {(onRetry || isOtherVersion) && (
        <Group mt="xs">
          <Button size="xs" variant="default" onClick={isOtherVersion ? () => location.reload() : onRetry}>
            {t(isOtherVersion ? 'reload' : 'again')}
          </Button>
        </Group>
      )}
    </Alert>
  );
}
