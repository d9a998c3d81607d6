import { Anchor, Badge, Group, Stack, Text, Title } from '@mantine/core';
import { TbAlertTriangle, TbCheck } from 'react-icons/tb';
import { Link } from '@tanstack/react-router';
import { ExactTime } from '../../parts/relative-time.tsx';
import { SubjectLink } from '../../parts/subject-link.tsx';
import type { Alert } from './alerts.ts';
import { useAlertTexts } from './texts.ts';

/** All that is known of an alert, and what to do about it. */
export function AlertDescription({ alert }: { alert: Alert }) {
  const t = useAlertTexts();
  const { rule, subject, what, toDo, since, resolvedAt, toldAt, runbook } = alert;
  const isOpen = resolvedAt === null;
  return (
    <Stack gap={6}>
      <Group gap="xs">
        <Badge
          color={isOpen ? 'red' : 'gray'}
          variant="light"
          leftSection={isOpen ? <TbAlertTriangle size={12} aria-hidden /> : <TbCheck size={12} aria-hidden />}
        >
          {isOpen ? t('open') : t('past')}
        </Badge>
        <Title order={2} size="h3">
          {t(rule)}
        </Title>
      </Group>
      <Text size="sm" className="anywhere" lang="en">
        {what}
      </Text>
      <Text size="sm" className="anywhere" style={{ whiteSpace: 'pre-line' }} lang="en">
        {toDo}
      </Text>
      <Group gap="md">
        <Text size="sm" component="div" className="anywhere">
          {t('subject')} <SubjectLink subject={subject} />
        </Text>
        <Text size="sm" c="dimmed" component="div">
          {t('since')} <ExactTime at={since} />
        </Text>
        {!isOpen && (
          <Text size="sm" c="dimmed" component="div">
            {t('ended')} <ExactTime at={resolvedAt} />
          </Text>
        )}
        <Text size="sm" c="dimmed" component="div">
          {toldAt === null ? (
            t('toldNobody')
          ) : (
            <>
              {t('toldAt')} <ExactTime at={toldAt} />
            </>
          )}
        </Text>
        <Anchor component={Link} to="/alerts" search={{ tab: 'past', rule, subject } as never} size="sm">
          {t('earlier')}
        </Anchor>
      </Group>
      <Text size="xs" c="dimmed">
        {t('runbook', { place: runbook })}
      </Text>
    </Stack>
  );
}
