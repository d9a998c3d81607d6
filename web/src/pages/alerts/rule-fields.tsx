import { Checkbox, Group, Paper, Stack, Switch, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { DurationInput } from '../../parts/duration-input.tsx';
import { errorOf } from '../../parts/field-errors.ts';
import { NumberField } from '../../parts/number-field.tsx';
import type { AlertRules, RuleName } from './alerts.ts';
import { useAlertTexts } from './texts.ts';

interface Props {
  rules: AlertRules;
  onChange: (changes: Partial<AlertRules>) => void;
  /** Of the last attempt to save. */
  error: unknown;
  isReadOnly: boolean;
}

type Role = AlertRules['roleMissing']['roles'][number];
const roles: readonly Role[] = ['api', 'worker', 'dispatcher'];
/** The default limit is 50 of them. */
const gibibyte = 1024 ** 3;

/** Each rule in a frame of its own. */
export function RuleFields(props: Props) {
  const { rules, onChange, error, isReadOnly } = props;
  const t = useAlertTexts();
  const { deadLetters, backlogGrowing, roleMissing, ledgerDisk, subscriptionDisabled } = rules;
  const disabled = isReadOnly;
  return (
    <>
      <Rule
        name="dead-letters"
        hint={t('deadLettersHint')}
        isEnabled={deadLetters.isEnabled}
        onEnable={(isEnabled) => onChange({ deadLetters: { ...deadLetters, isEnabled } })}
        disabled={disabled}
      >
        <NumberField
          label={t('count')}
          value={deadLetters.count}
          onChange={(count) => onChange({ deadLetters: { ...deadLetters, count: count ?? 0 } })}
          error={errorOf(error, 'deadLetters')}
          w={120}
          hideControls
          disabled={disabled}
        />
      </Rule>
      <RuleAfter name="oldest-due" field="oldestDue" hint={t('oldestDueHint')} {...props} />
      <RuleAfter name="endpoint-open" field="endpointOpen" hint={t('endpointOpenHint')} {...props} />
      <Rule
        name="backlog-growing"
        hint={t('backlogHint')}
        isEnabled={backlogGrowing.isEnabled}
        onEnable={(isEnabled) => onChange({ backlogGrowing: { ...backlogGrowing, isEnabled } })}
        disabled={disabled}
      >
        <Group align="flex-start">
          <NumberField
            label={t('count')}
            value={backlogGrowing.count}
            onChange={(count) => onChange({ backlogGrowing: { ...backlogGrowing, count: count ?? 0 } })}
            error={errorOf(error, 'backlogGrowing')}
            w={120}
            hideControls
            thousandSeparator=" "
            disabled={disabled}
          />
          <DurationInput
            label={t('late')}
            value={backlogGrowing.forSeconds}
            onChange={(seconds) => onChange({ backlogGrowing: { ...backlogGrowing, forSeconds: seconds ?? 0 } })}
            disabled={disabled}
          />
        </Group>
      </Rule>
      <Rule
        name="role-missing"
        hint={t('roleMissingHint')}
        isEnabled={roleMissing.isEnabled}
        onEnable={(isEnabled) => onChange({ roleMissing: { ...roleMissing, isEnabled } })}
        disabled={disabled}
      >
        <Stack gap="sm">
          <Checkbox.Group
            label={t('roles')}
            value={roleMissing.roles}
            onChange={(chosen) => onChange({ roleMissing: { ...roleMissing, roles: chosen as Role[] } })}
          >
            <Group mt={4}>
              {roles.map((role) => (
                <Checkbox key={role} value={role} label={role} disabled={disabled} />
              ))}
            </Group>
          </Checkbox.Group>
          <DurationInput
            label={t('late')}
            value={roleMissing.afterSeconds}
            onChange={(afterSeconds) => onChange({ roleMissing: { ...roleMissing, afterSeconds: afterSeconds ?? 0 } })}
            error={errorOf(error, 'roleMissing')}
            disabled={disabled}
          />
        </Stack>
      </Rule>
      <Rule
        name="ledger-disk"
        hint={t('ledgerDiskHint')}
        isEnabled={ledgerDisk.isEnabled}
        onEnable={(isEnabled) => onChange({ ledgerDisk: { ...ledgerDisk, isEnabled } })}
        disabled={disabled}
      >
        <NumberField
          label={t('gibibytes')}
          value={Math.round((ledgerDisk.maxBytes / gibibyte) * 1000) / 1000}
          onChange={(size) => onChange({ ledgerDisk: { ...ledgerDisk, maxBytes: Math.round((size ?? 0) * gibibyte) } })}
          error={errorOf(error, 'ledgerDisk')}
          w={120}
          hideControls
          disabled={disabled}
        />
      </Rule>
      <RuleAfter name="subscription-failing" field="subscriptionFailing" hint={t('failingHint')} {...props} />
      <Rule
        name="subscription-disabled"
        hint={t('disabledHint')}
        isEnabled={subscriptionDisabled.isEnabled}
        onEnable={(isEnabled) => onChange({ subscriptionDisabled: { isEnabled } })}
        disabled={disabled}
      />
    </>
  );
}

interface RuleAfterProps extends Props {
  name: RuleName;
  field: 'oldestDue' | 'endpointOpen' | 'subscriptionFailing';
  hint: string;
}

/** One whose only number is the time after which it tells. */
function RuleAfter({ name, field, hint, rules, onChange, error, isReadOnly }: RuleAfterProps) {
  const t = useAlertTexts();
  const rule = rules[field];
  return (
    <Rule
      name={name}
      hint={hint}
      isEnabled={rule.isEnabled}
      onEnable={(isEnabled) => onChange({ [field]: { ...rule, isEnabled } })}
      disabled={isReadOnly}
    >
      <DurationInput
        label={t('late')}
        value={rule.afterSeconds}
        onChange={(afterSeconds) => onChange({ [field]: { ...rule, afterSeconds: afterSeconds ?? 0 } })}
        error={errorOf(error, field)}
        disabled={isReadOnly}
      />
    </Rule>
  );
}

interface RuleProps {
  name: RuleName;
  hint: string;
  isEnabled: boolean;
  onEnable: (isEnabled: boolean) => void;
  disabled: boolean;
  children?: ReactNode;
}

function Rule({ name, hint, isEnabled, onEnable, disabled, children }: RuleProps) {
  const t = useAlertTexts();
  return (
    <Paper withBorder p="md" component="section" aria-label={t(name)}>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <Title order={2} size="h3">
          {t(name)}
        </Title>
        <Switch
          aria-label={`${t(name)}: ${t('enabled')}`}
          checked={isEnabled}
          onChange={(event) => onEnable(event.currentTarget.checked)}
          disabled={disabled}
        />
      </Group>
      <Text size="sm" c="dimmed" mb="sm">
        {hint}
      </Text>
      {isEnabled && children}
    </Paper>
  );
}
