import { Button, Group, Modal, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api } from '../../api/client.ts';
import { errorOf } from '../../parts/field-errors.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { ApplicationFields, type ApplicationValues } from './application-fields.tsx';
import { applicationsKey } from './applications.ts';
import type { ShownSecret } from './secret-dialog.tsx';
import { useApplicationTexts } from './texts.ts';

interface Props {
  opened: boolean;
  onClose: () => void;
  onCreated: (shown: ShownSecret | undefined) => void;
}

const empty: ApplicationValues = { label: '', scopes: [], isSuperuser: false, alertEmail: null };

export function NewApplication({ opened, onClose, onCreated }: Props) {
  const t = useApplicationTexts();
  const client = useQueryClient();
  const [clientId, setClientId] = useState('');
  const [secret, setSecret] = useState('');
  const [values, setValues] = useState(empty);
  // The same for every try of this form: one that was carried out, although its answer was lost, is not carried out twice.
  const [key] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const create = useMutation({
    mutationFn: () =>
      answerOf(
        api.POST('/admin/v1/applications', {
          params: { header: { 'Idempotency-Key': key } },
          body: { clientId, ...values, ...(secret !== '' && { secret }) },
        }),
      ),
    onSuccess: (created) => {
      void client.invalidateQueries({ queryKey: applicationsKey });
      onCreated(created.secret === undefined ? undefined : { clientId: created.clientId, secret: created.secret });
    },
  });
  return (
    <Modal opened={opened} onClose={onClose} title={t('add')} size="lg" closeButtonProps={{ 'aria-label': t('close') }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate();
        }}
      >
        <Stack gap="md">
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
          {create.error && <ProblemAlert error={create.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {t('cancel')}
            </Button>
            <Button type="submit" loading={create.isPending}>
              {t('add')}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
