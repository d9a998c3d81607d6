import { TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api } from '../../api/client.ts';
import { isSame } from '../../drafts/draft.ts';
import { errorOf } from '../../parts/field-errors.tsx';
import { NewDialog } from '../../parts/new-dialog.tsx';
import { useGoOn } from '../../parts/use-go-on.ts';
import { ChannelFields, isComplete, noValues, type ChannelValues } from './channel-fields.tsx';
import { channelsKey, type ChannelChanges } from './channels.ts';
import { useChannelTexts } from './texts.ts';

interface Props {
  opened: boolean;
  onClose: () => void;
}

/** The input stays when it is closed and opened again, and through every error. */
export function NewChannel({ opened, onClose }: Props) {
  const t = useChannelTexts();
  const client = useQueryClient();
  const goOn = useGoOn();
  const [name, setName] = useState('');
  const [values, setValues] = useState<ChannelValues>(noValues);
  const create = useMutation({
    // Not null: a removed channel that is made again keeps its days where none are given.
    mutationFn: ({ bodyRetentionDays, ...rest }: ChannelChanges) =>
      answerOf(
        api.POST('/admin/v1/channels', { body: { name, ...rest, bodyRetentionDays: bodyRetentionDays ?? undefined } }),
      ),
    onSuccess: async ({ id }) => {
      setName('');
      setValues(noValues);
      await client.invalidateQueries({ queryKey: channelsKey });
      await goOn({ to: '/channels/$id', params: { id } });
    },
  });
  return (
    <NewDialog
      opened={opened}
      onClose={onClose}
      title={t('add')}
      error={create.error}
      isBusy={create.isPending}
      isTyped={name !== '' || !isSame(values, noValues)}
      onSubmit={() => {
        if (isComplete(values)) create.mutate(values);
      }}
      isReady={isComplete(values)}
    >
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
        isNew
      />
    </NewDialog>
  );
}
