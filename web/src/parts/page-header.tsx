import { Group, Text, Title } from '@mantine/core';
import { useEffect, type ReactNode } from 'react';

interface Props {
  title: string;
  /** One line under the title. */
  description?: ReactNode;
  /** Beside the title. */
  children?: ReactNode;
}

/** The heading of a page, which also names the tab of the browser. */
export function PageHeader({ title, description, children }: Props) {
  useEffect(() => {
    document.title = `${title} · Heraut`;
  }, [title]);
  return (
    <Group justify="space-between" align="flex-start" mb="md" gap="sm">
      <div style={{ minWidth: 0 }}>
        <Title order={1} className="anywhere">
          {title}
        </Title>
        {description && (
          <Text c="dimmed" size="sm" component="div">
            {description}
          </Text>
        )}
      </div>
      {children && <Group gap="xs">{children}</Group>}
    </Group>
  );
}
