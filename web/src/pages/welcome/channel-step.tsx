import { Alert, Group, TagsInput, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api } from '../../api/client.ts';
import { isProblem } from '../../api/problem.ts';
import { BusyButton } from '../../parts/busy-button.tsx';
import { InEnglish } from '../../parts/in-english.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useMay } from '../../shell/session.tsx';
import { Why } from './step.tsx';
import { useWelcomeTexts } from './texts.ts';
import { useLookAgain } from './use-progress.ts';

export function ChannelStep() {
  const t = useWelcomeTexts();
  const may = useMay('administrator');
  const lookAgain = useLookAgain();
  const [name, setName] = useState('demo');
  const [filters, setFilters] = useState<string[]>([]);
  const make = useMutation({
    mutationFn: () => answerOf(api.POST('/admin/v1/channels', { body: { name, filters } })),
    onSuccess: lookAgain,
  });
  const wrong = isProblem(make.error) ? make.error.problem.invalidParams : [];
  const errorOf = (field: string) => {
    const found = wrong.find(({ name: of }) => of.split('.')[0] === field);
    return found && <InEnglish>{found.reason}</InEnglish>;
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate();
      }}
    >
      <Why>{t('channelWhy')}</Why>
      {!may && <Alert color="gray">{t('needsAdministrator')}</Alert>}
      <Group align="flex-start" mt="sm" gap="sm">
        <TextInput
          label={t('channelName')}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={errorOf('name')}
          autoComplete="off"
          withAsterisk
          style={{ flex: '1 1 180px' }}
        />
        <TagsInput
          label={t('filters')}
          description={t('filtersDetail')}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          value={filters}
          onChange={setFilters}
          error={errorOf('filters')}
          acceptValueOnBlur
          style={{ flex: '2 1 260px' }}
        />
      </Group>
      {make.error !== null && wrong.length === 0 && <ProblemAlert error={make.error} />}
      <BusyButton type="submit" mt="sm" isBusy={make.isPending} disabled={!may}>
        {t('makeChannel')}
      </BusyButton>
    </form>
  );
}
