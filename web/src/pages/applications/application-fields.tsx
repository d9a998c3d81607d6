import { Checkbox, Stack, Switch, TextInput } from '@mantine/core';
import { errorOf } from '../../parts/field-errors.tsx';
import type { Application } from './applications.ts';
import { useApplicationTexts } from './texts.ts';

export type ApplicationValues = Pick<Application, 'label' | 'scopes' | 'isSuperuser' | 'alertEmail'>;

export const valuesOf = ({ label, scopes, isSuperuser, alertEmail }: Application): ApplicationValues => ({
  label,
  scopes,
  isSuperuser,
  alertEmail,
});

type Scope = Application['scopes'][number];

interface Props {
  values: ApplicationValues;
  onChange: (changes: Partial<ApplicationValues>) => void;
  /** Of the last attempt to save. */
  error: unknown;
  isReadOnly: boolean;
}

/** The fields of an application that can be changed. */
export function ApplicationFields({ values, onChange, error, isReadOnly }: Props) {
  const t = useApplicationTexts();
  return (
    <Stack gap="md">
      <TextInput
        label={t('label')}
        description={t('labelHint')}
        value={values.label}
        onChange={(event) => onChange({ label: event.currentTarget.value })}
        error={errorOf(error, 'label')}
        readOnly={isReadOnly}
        required
        autoComplete="off"
      />
      <Checkbox.Group
        label={t('may')}
        description={t('mayHint')}
        value={values.scopes}
        onChange={(scopes) => onChange({ scopes: scopes as Scope[] })}
        error={errorOf(error, 'scopes')}
      >
        <Stack gap="xs" mt="xs">
          <Checkbox value="notificaties.publiceren" label={t('publish')} disabled={isReadOnly} />
          <Checkbox value="notificaties.consumeren" label={t('consume')} disabled={isReadOnly} />
        </Stack>
      </Checkbox.Group>
      <Switch
        label={t('superuser')}
        description={t('superuserHint')}
        checked={values.isSuperuser}
        onChange={(event) => onChange({ isSuperuser: event.currentTarget.checked })}
        disabled={isReadOnly}
      />
      <TextInput
        label={t('email')}
        description={t('emailHint')}
        type="email"
        value={values.alertEmail ?? ''}
        onChange={(event) => onChange({ alertEmail: event.currentTarget.value || null })}
        error={errorOf(error, 'alertEmail')}
        readOnly={isReadOnly}
        autoComplete="off"
      />
    </Stack>
  );
}
