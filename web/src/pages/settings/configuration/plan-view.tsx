import { Badge, Group, List, Paper, Stack, Text, Title } from '@mantine/core';
import { TbMinus, TbPencil, TbPlus } from 'react-icons/tb';
import type { components } from '../../../../generated/admin-api.d.ts';
import { FieldDiff, type ComparedField } from '../../../parts/field-diff.tsx';
import { useConfigurationTexts } from './texts.ts';

export type Plan = components['schemas']['ConfigurationPlan'];
export type PlannedChange = Plan['changes'][number];

const looks = {
  create: ['green', TbPlus],
  change: ['blue', TbPencil],
  remove: ['red', TbMinus],
} as const;

export const countOf = ({ changes }: Plan, action: PlannedChange['action']): number =>
  changes.filter((change) => change.action === action).length;

/** Things that are created, changed field by field, and removed; then those that stay. */
export function PlanView({ plan }: { plan: Plan }) {
  const t = useConfigurationTexts();
  const unchanged = Object.values(plan.unchanged).reduce((sum, count) => sum + count, 0);
  const unnamed = (['applications', 'channels', 'subscriptions'] as const).filter(
    (section) => plan.unnamed[section].count > 0,
  );
  return (
    <Stack gap="sm">
      <Group gap="xs">
        {(['create', 'change', 'remove'] as const)
          .filter((action) => countOf(plan, action) > 0)
          .map((action) => (
            <ActionBadge key={action} action={action} label={t(`${action}Count`, { count: countOf(plan, action) })} />
          ))}
        <Text size="sm" c="dimmed">
          {t('unchanged', { count: unchanged })}
        </Text>
      </Group>
      {plan.changes.length === 0 && <Text size="sm">{t('nothing')}</Text>}
      {plan.changes.map((change) => (
        <PlannedChangeView key={`${change.section} ${change.key}`} change={change} />
      ))}
      {unnamed.map((section) => (
        <div key={section}>
          <Text size="sm" c="dimmed">
            {t('unnamed', { count: plan.unnamed[section].count, section: t(section) })}
          </Text>
          <List size="xs" c="dimmed" className="anywhere">
            {plan.unnamed[section].first.map((name) => (
              <List.Item key={name}>{name}</List.Item>
            ))}
          </List>
        </div>
      ))}
    </Stack>
  );
}

function PlannedChangeView({ change: { section, action, key, about, fields, notes } }: { change: PlannedChange }) {
  const t = useConfigurationTexts();
  const secrets = { set: t('secretSet'), changed: t('secretChanged'), removed: t('secretRemoved') };
  const compared = fields.map((field): ComparedField => {
    const none = { before: undefined, after: undefined };
    if ('secret' in field) return { name: field.name, ...none, instead: secrets[field.secret] };
    return {
      name: field.name,
      before: action === 'create' || field.before === null ? undefined : field.before,
      after: field.after === null ? undefined : field.after,
    };
  });
  return (
    <Paper withBorder p="sm" component="section" aria-label={`${t(action)} ${t(section)} ${key}`}>
      <Group gap="xs" mb={compared.length > 0 ? 'xs' : 0}>
        <ActionBadge action={action} label={t(action)} />
        <Title order={3} size="h4" className="anywhere">
          {t(section)} {key}
        </Title>
        {about !== null && (
          <Text size="sm" c="dimmed" className="anywhere">
            {about}
          </Text>
        )}
      </Group>
      {compared.length > 0 && <FieldDiff fields={compared} />}
      {notes.map((note) => (
        <Text key={note} size="sm" mt="xs" className="anywhere">
          {t('notes')}: {note}
        </Text>
      ))}
    </Paper>
  );
}

function ActionBadge({ action, label }: { action: PlannedChange['action']; label: string }) {
  const [color, Icon] = looks[action];
  return (
    <Badge variant="light" color={color} leftSection={<Icon size={12} aria-hidden />}>
      {label}
    </Badge>
  );
}
