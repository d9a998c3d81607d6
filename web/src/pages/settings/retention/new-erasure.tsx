import { Group, Radio, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api } from '../../../api/client.ts';
import { BusyButton } from '../../../parts/busy-button.tsx';
import { Confirm } from '../../../parts/confirm.tsx';
import { errorOf } from '../../../parts/field-errors.tsx';
import { AnchorLink } from '../../../parts/links.tsx';
import { ProblemAlert } from '../../../parts/problem-alert.tsx';
import { useRetentionTexts } from './texts.ts';

export const erasuresKey = ['erasures'] as const;

/**
 * About a main object they are counted first, and erased when that is confirmed; one notification is confirmed here.
 */
export function NewErasure({ onCounted }: { onCounted: (id: string, mainObject: string) => void }) {
  const t = useRetentionTexts();
  const client = useQueryClient();
  const [by, setBy] = useState<'mainObject' | 'notification'>('mainObject');
  const [sought, setSought] = useState('');
  const [asked, setAsked] = useState('');
  const [isAsking, ask] = useState(false);
  const request = useMutation({
    mutationFn: (about: string) => answerOf(api.POST('/admin/v1/erasures', { body: { [by]: about } })),
    onSuccess: ({ id }, about) => {
      if (by === 'mainObject') onCounted(id, about);
      setSought((now) => (now.trim() === about ? '' : now));
      return client.invalidateQueries({ queryKey: erasuresKey });
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (by === 'mainObject') return request.mutate(sought.trim());
        setAsked(sought.trim());
        ask(true);
      }}
    >
      <Stack gap="sm" mb="md">
        <Radio.Group
          label={t('by')}
          value={by}
          onChange={(value) => {
            request.reset();
            setBy(value as typeof by);
          }}
        >
          <Group gap="md" mt={4}>
            <Radio value="mainObject" label={t('mainObject')} />
            <Radio value="notification" label={t('notification')} />
          </Group>
        </Radio.Group>
        <TextInput
          label={t(`${by}Label`)}
          description={t(`${by}Hint`)}
          value={sought}
          onChange={(event) => setSought(event.currentTarget.value)}
          error={errorOf(request.error, by)}
          required
          autoComplete="off"
        />
        {request.error && !isAsking && <ProblemAlert error={request.error} />}
        <Group>
          <BusyButton type="submit" variant="default" isBusy={request.isPending} disabled={sought.trim() === ''}>
            {by === 'mainObject' ? t('count') : t('erase')}
          </BusyButton>
        </Group>
      </Stack>
      <Confirm
        opened={isAsking}
        onClose={() => ask(false)}
        title={t('eraseOneTitle')}
        action={t('erase')}
        onConfirm={() => request.mutateAsync(asked)}
      >
        <AnchorLink size="sm" className="anywhere" to="/notifications/$id" params={{ id: asked }} target="_blank">
          {asked}
        </AnchorLink>
        <Text size="sm">{t('eraseOneDetail')}</Text>
      </Confirm>
    </form>
  );
}
