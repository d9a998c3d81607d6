import { PasswordInput, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api } from '../../api/client.ts';
import { isSame } from '../../drafts/draft.ts';
import { errorOf } from '../../parts/field-errors.tsx';
import { NewDialog } from '../../parts/new-dialog.tsx';
import { useOnce } from '../../parts/use-once.ts';
import { ApplicationFields, type ApplicationValues } from './application-fields.tsx';
import { applicationsKey, type ShownSecret } from './applications.ts';
import { useApplicationTexts } from './texts.ts';

interface Props {
  opened: boolean;
  onClose: () => void;
  onCreated: (shown: ShownSecret | undefined) => void;
}

const empty: ApplicationValues = { label: '', scopes: [], isSuperuser: false, alertEmail: null };

/** The input stays when it is closed and opened again, and through every error. */
export function NewApplication({ opened, onClose, onCreated }: Props) {
  const t = useApplicationTexts();
  const client = useQueryClient();
  const [clientId, setClientId] = useState('');
  const [secret, setSecret] = useState('');
  const [values, setValues] = useState(empty);
  const once = useOnce();
  const create = useMutation({
    mutationFn: () => {
      const body = { clientId, ...values, ...(secret !== '' && { secret }) };
      return once(body, (sent, header) =>
        answerOf(api.POST('/admin/v1/applications', { params: { header }, body: sent })),
      );
    },
    onSuccess: (created) => {
      setClientId('');
      setSecret('');
      setValues(empty);
      void client.invalidateQueries({ queryKey: applicationsKey });
      onCreated(created.secret === undefined ? undefined : { clientId: created.clientId, secret: created.secret });
    },
  });
  return (
    <NewDialog
      opened={opened}
      onClose={onClose}
      title={t('add')}
      error={create.error}
      isBusy={create.isPending}
      isTyped={clientId !== '' || secret !== '' || !isSame(values, empty)}
      onSubmit={() => create.mutate()}
    >
      <TextInput
        label={t('clientId')}
        description={t('clientIdHint')}
        value={clientId}
        onChange={(event) => setClientId(event.currentTarget.value)}
        error={errorOf(create.error, 'clientId')}
        required
        data-autofocus
        autoComplete="off"
      />
      <ApplicationFields
        values={values}
        onChange={(changes) => setValues((before) => ({ ...before, ...changes }))}
        error={create.error}
        isReadOnly={false}
      />
      <PasswordInput
        label={t('secret')}
        description={t('secretHint')}
        value={secret}
        onChange={(event) => setSecret(event.currentTarget.value)}
        error={errorOf(create.error, 'secret')}
        autoComplete="new-password"
      />
    </NewDialog>
  );
}
