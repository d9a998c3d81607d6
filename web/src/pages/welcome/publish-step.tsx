import { Alert, Group } from '@mantine/core';
import { BusyButton } from '../../parts/busy-button.tsx';
import { ButtonLink } from '../../parts/links.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useMay } from '../../shell/session.tsx';
import { useChannels } from '../publish/channels.ts';
import { emptyDraft, notificatieOf } from '../publish/draft.ts';
import { usePublish } from '../publish/use-publish.ts';
import { Why } from './step.tsx';
import { useWelcomeTexts } from './texts.ts';
import { useLookAgain } from './use-progress.ts';

const example = {
  ...emptyDraft,
  action: 'create',
  resource: 'case',
  mainObject: 'https://example.com/cases/1',
  resourceUrl: 'https://example.com/cases/1',
};

/** @param channel one that somebody is subscribed to */
export function PublishStep({ channel }: { channel: string }) {
  const t = useWelcomeTexts();
  const may = useMay('operator');
  const lookAgain = useLookAgain();
  const channels = useChannels();
  const publish = usePublish();
  const publishExample = () => {
    const filterNames = channels.data!.channels.find(({ name }) => name === channel)?.filters ?? [];
    const draft = { ...example, channel, filters: Object.fromEntries(filterNames.map((name) => [name, 'example'])) };
    const body = notificatieOf(draft, filterNames, channels.data!.now());
    publish.mutate({ draft: JSON.stringify(draft), request: { body, headers: {} } }, { onSuccess: lookAgain });
  };
  return (
    <>
      <Why>{t('publishWhy', { channel })}</Why>
      {!may && <Alert color="gray">{t('needsOperator')}</Alert>}
      {publish.error !== null && <ProblemAlert error={publish.error} />}
      <Group>
        <BusyButton onClick={publishExample} isBusy={publish.isPending} disabled={!may || !channels.data}>
          {t('publishExample')}
        </BusyButton>
        <ButtonLink variant="default" to="/publish" search={{ channel }}>
          {t('form')}
        </ButtonLink>
      </Group>
    </>
  );
}
