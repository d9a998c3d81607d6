import { Button, Group, Modal, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answerOf, api } from '../../api/client.ts';
import { errorOf } from '../../parts/field-errors.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { ChannelFields, noValues, type ChannelValues } from './channel-fields.tsx';
import { channelsKey } from './channels.ts';
import { useChannelTexts } from './texts.ts';

interface Props {
  opened: boolean;
  onClose: () => void;
}

export function NewChannel({ opened, onClose }: Props) {
  const t = useChannelTexts();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const [values, setValues] = useState<ChannelValues>(noValues);
  const create = useMutation({
    mutationFn: () => answerOf(api.POST('/admin/v1/channels', { body: { name, ...values } })),
    onSuccess: async ({ id }) => {
      await client.invalidateQueries({ queryKey: channelsKey });
      await navigate({ to: '/channels/$id', params: { id } });
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
            label={t('name')}
            description={t('nameHint')}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={errorOf(create.error, 'name')}
            required
            data-autofocus
            autoComplete="off"
          />
          <ChannelFields
            values={values}
            onChange={(changes) => setValues((before) => ({ ...before, ...changes }))}
            error={create.error}
            isReadOnly={false}
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
