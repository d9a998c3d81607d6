import { Group, Paper, Stack, Text, ThemeIcon, Title, VisuallyHidden } from '@mantine/core';
import { TbCheck } from 'react-icons/tb';
import type { ReactNode } from 'react';
import { useWelcomeTexts } from './texts.ts';

export type StepState = 'done' | 'current' | 'later';

interface Props {
  number: number;
  title: string;
  state: StepState;
  /** The result, where the step is done; the task, where it is not. */
  children: ReactNode;
}

export function Step({ number, title, state, children }: Props) {
  const t = useWelcomeTexts();
  return (
    <Paper
      component="li"
      withBorder
      p="md"
      aria-current={state === 'current' ? 'step' : undefined}
      style={state === 'current' ? { borderColor: 'var(--mantine-primary-color-filled)' } : undefined}
    >
      <Group align="flex-start" wrap="nowrap" gap="md">
        <ThemeIcon
          radius="xl"
          size={32}
          variant={state === 'later' ? 'default' : state === 'done' ? 'light' : 'filled'}
          color={state === 'done' ? 'green' : undefined}
          aria-hidden
        >
          {state === 'done' ? <TbCheck size={18} /> : number}
        </ThemeIcon>
        <Stack gap="xs" style={{ flex: 1, minWidth: 0 }}>
          <Title order={2} lh="32px">
            {title}
            <VisuallyHidden>, {t(state)}</VisuallyHidden>
          </Title>
          {children}
        </Stack>
      </Group>
    </Paper>
  );
}

export const Why = ({ children }: { children: ReactNode }) => (
  <Text size="sm" c="dimmed" maw={640}>
    {children}
  </Text>
);
