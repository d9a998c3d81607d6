import { Alert, Button, Code, Group, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { ApiProblem, Unreachable } from '../api/problem.ts';
import { defineTexts } from '../i18n/i18n.ts';

const useTexts = defineTexts(
  'problem',
  {
    unreachable: 'Heraut does not answer',
    unreachableDetail: 'It is down or starting, or the network is. This page goes on by itself when it answers again.',
    roleTooLow: 'Your role does not allow this',
    unexpected: 'Something went wrong in this page',
    again: 'Try again',
    log: 'The log has it under {{instance}}.',
    code: 'Code',
  },
  {
    unreachable: 'Heraut antwoordt niet',
    unreachableDetail:
      'Het staat uit of start op, of het netwerk hapert. Deze pagina gaat vanzelf verder zodra het weer antwoordt.',
    roleTooLow: 'Uw rol staat dit niet toe',
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
}

/** An error with its code and the way out. */
export function ProblemAlert({ error, onRetry }: Props) {
  const t = useTexts();
  const problem = error instanceof ApiProblem ? error.problem : undefined;
  const title =
    problem?.code === 'role-too-low'
      ? t('roleTooLow')
      : (problem?.title ?? (error instanceof Unreachable ? t('unreachable') : t('unexpected')));
  const detail =
    problem?.detail ??
    (error instanceof Unreachable ? t('unreachableDetail') : error instanceof Error ? error.message : '');
  return (
    <Alert color="red" variant="light" title={title} icon={<IconAlertTriangle aria-hidden />} role="alert">
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {detail}
      </Text>
      {problem?.invalidParams.map(({ name, reason, code }) => (
        <Text size="sm" key={`${name} ${code}`} style={{ overflowWrap: 'anywhere' }}>
          <Code>{name}</Code> {reason}
        </Text>
      ))}
      {problem && (
        <Text size="xs" c="dimmed" mt={4}>
          {t('code')}: <Code>{problem.code}</Code> {problem.instance && t('log', { instance: problem.instance })}
        </Text>
      )}
      {onRetry && (
        <Group mt="xs">
          <Button size="xs" variant="default" onClick={onRetry}>
            {t('again')}
          </Button>
        </Group>
      )}
    </Alert>
  );
}
