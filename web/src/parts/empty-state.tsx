import { Paper, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

interface Props {
  title: string;
  /** Says what to do now. */
  children?: ReactNode;
  action?: ReactNode;
}

/** Stands where a list has nothing to show. */
export function EmptyState({ title, children, action }: Props) {
  return (
    <Paper withBorder p="xl">
      <Stack align="center" gap="xs">
        <Title order={2} size="h3">
          {title}
        </Title>
        {children && (
          <Text size="sm" c="dimmed" ta="center" maw={520}>
            {children}
          </Text>
        )}
        {action}
      </Stack>
    </Paper>
  );
}
