import { Alert, Button, Code, Group, Modal, Stack, Text } from '@mantine/core';
import { TbKey } from 'react-icons/tb';
import { defineTexts } from '../i18n/i18n.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { AskSecret } from '../parts/leaving.tsx';

const useTexts = defineTexts(
  'secret-once',
  {
    title: 'Copy this secret now',
    detail: 'It is shown this once. The receiver verifies signatures with it; if it gets lost, rotate the key.',
    copy: 'Copy the secret',
    done: 'I have it',
  },
  {
    title: 'Kopieer dit geheim nu',
    detail:
      'Het wordt alleen nu getoond. De ontvanger controleert er handtekeningen mee; raakt het zoek, vervang dan de sleutel.',
    copy: 'Kopieer het geheim',
    done: 'Ik heb het',
  },
);

/** A secret that is never shown again: it does not go away by a click beside it. */
export function SecretOnce({ secret, onClose }: { secret: string | null; onClose: () => void }) {
  const t = useTexts();
  return (
    <Modal
      opened={secret !== null}
      onClose={onClose}
      closeOnClickOutside={false}
      closeOnEscape={false}
      title={t('title')}
      centered
    >
      <Stack gap="sm">
        <Alert variant="light" color="orange" icon={<TbKey aria-hidden />}>
          <Text size="sm">{t('detail')}</Text>
        </Alert>
        <Group gap="xs" wrap="nowrap">
          <Code style={{ overflowWrap: 'anywhere', flex: 1 }}>{secret}</Code>
          <CopyButton value={secret ?? ''} label={t('copy')} />
        </Group>
        <Group justify="flex-end">
          <Button onClick={onClose}>{t('done')}</Button>
        </Group>
      </Stack>
      <AskSecret isShown={secret !== null} />
    </Modal>
  );
}
