import { Checkbox, Group, Paper, Stack, Switch, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { DurationInput } from '../../parts/duration-input.tsx';
import { errorOf } from '../../parts/field-errors.tsx';
import { NumberField } from '../../parts/number-field.tsx';
import type { AlertRules, RuleName } from './alerts.ts';
import { useAlertTexts } from './texts.ts';
import { switched, type TypedRules } from './typed-rules.ts';

interface Props {
  rules: TypedRules;
  saved: AlertRules;
  onChange: (changes: Partial<TypedRules>) => void;
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
  const { rules, saved, onChange, error, isReadOnly } = props;
  const t = useAlertTexts();
  const { deadLetters, backlogGrowing, roleMissing, ledgerDisk, subscriptionDisabled } = rules;
  const disabled = isReadOnly;
  const numberError = (value: number | null, field: string) =>
    value === null ? t('numberNeeded') : errorOf(error, field);
  const timeError = (value: number | null, field: string) => (value === null ? t('timeNeeded') : errorOf(error, field));
  return (
    <>
      <Rule
        name="dead-letters"
        hint={t('deadLettersHint')}
        isEnabled={deadLetters.isEnabled}
        onEnable={(isEnabled) => onChange({ deadLetters: switched(deadLetters, saved.deadLetters, isEnabled) })}
        disabled={disabled}
      >
        <NumberField
          label={t('count')}
          value={deadLetters.count}
          onChange={(count) => onChange({ deadLetters: { ...deadLetters, count } })}
          error={numberError(deadLetters.count, 'deadLetters')}
          w={120}
          allowNegative={false}
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
        onEnable={(isEnabled) =>
          onChange({ backlogGrowing: switched(backlogGrowing, saved.backlogGrowing, isEnabled) })
        }
        disabled={disabled}
      >
        <Group align="flex-start">
          <NumberField
            label={t('count')}
            value={backlogGrowing.count}
            onChange={(count) => onChange({ backlogGrowing: { ...backlogGrowing, count } })}
            error={numberError(backlogGrowing.count, 'backlogGrowing.count')}
            w={120}
            allowNegative={false}
            hideControls
            thousandSeparator=" "
            disabled={disabled}
          />
          <DurationInput
            label={t('late')}
            value={backlogGrowing.forSeconds}
            onChange={(seconds) => onChange({ backlogGrowing: { ...backlogGrowing, forSeconds: seconds } })}
            error={timeError(backlogGrowing.forSeconds, 'backlogGrowing.forSeconds')}
            disabled={disabled}
          />
        </Group>
      </Rule>
      <Rule
        name="role-missing"
        hint={t('roleMissingHint')}
        isEnabled={roleMissing.isEnabled}
        onEnable={(isEnabled) => onChange({ roleMissing: switched(roleMissing, saved.roleMissing, isEnabled) })}
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
            onChange={(afterSeconds) => onChange({ roleMissing: { ...roleMissing, afterSeconds } })}
            error={timeError(roleMissing.afterSeconds, 'roleMissing')}
            disabled={disabled}
          />
        </Stack>
      </Rule>
      <Rule
        name="ledger-disk"
        hint={t('ledgerDiskHint')}
        isEnabled={ledgerDisk.isEnabled}
        onEnable={(isEnabled) => onChange({ ledgerDisk: switched(ledgerDisk, saved.ledgerDisk, isEnabled) })}
        disabled={disabled}
      >
        <NumberField
          label={t('gibibytes')}
          value={ledgerDisk.maxBytes === null ? null : Math.round((ledgerDisk.maxBytes / gibibyte) * 1000) / 1000}
          onChange={(size) =>
            onChange({ ledgerDisk: { ...ledgerDisk, maxBytes: size === null ? null : Math.round(size * gibibyte) } })
          }
          error={numberError(ledgerDisk.maxBytes, 'ledgerDisk')}
          w={120}
          allowNegative={false}
          hideControls
          disabled={disabled}
        />
      </Rule>
      <RuleAfter name="subscription-failing" field="subscriptionFailing" hint={t('failingHint')} {...props} />
      <RuleAfter name="calls-not-made" field="callsNotMade" hint={t('notMadeHint')} {...props} />
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
  field: 'oldestDue' | 'endpointOpen' | 'subscriptionFailing' | 'callsNotMade';
  hint: string;
}

/** One whose only number is the time after which it tells. */
function RuleAfter({ name, field, hint, rules, saved, onChange, error, isReadOnly }: RuleAfterProps) {
  const t = useAlertTexts();
  const rule = rules[field];
  return (
    <Rule
      name={name}
      hint={hint}
      isEnabled={rule.isEnabled}
      onEnable={(isEnabled) => onChange({ [field]: switched(rule, saved[field], isEnabled) })}
      disabled={isReadOnly}
    >
      <DurationInput
        label={t('late')}
        value={rule.afterSeconds}
        onChange={(afterSeconds) => onChange({ [field]: { ...rule, afterSeconds } })}
        error={rule.afterSeconds === null ? t('timeNeeded') : errorOf(error, field)}
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
