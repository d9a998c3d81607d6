import { Button, Code, Group, Modal, Stack, Text } from '@mantine/core';
import { CopyButton } from '../../parts/copy-button.tsx';
import { AskSecret } from '../../parts/leaving.tsx';
import { useApplicationTexts } from './texts.ts';

export interface ShownSecret {
  clientId: string;
  secret: string;
}

/** Shows a secret this once. Neither a click beside it nor Escape closes it. */
export function SecretDialog({ shown, onClose }: { shown: ShownSecret | undefined; onClose: () => void }) {
  const t = useApplicationTexts();
  return (
    <Modal
      opened={shown !== undefined}
      onClose={onClose}
      title={t('newSecret', { name: shown?.clientId })}
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
      centered
    >
      {shown && (
        <Stack gap="md">
          <Text size="sm">{t('shownOnce')}</Text>
          <Group gap="xs" wrap="nowrap">
            <Code block style={{ flex: 1, overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}>
              {shown.secret}
            </Code>
            <CopyButton value={shown.secret} label={t('copySecret')} />
          </Group>
          <Group justify="flex-end">
            <Button onClick={onClose} data-autofocus>
              {t('done')}
            </Button>
          </Group>
        </Stack>
      )}
      <AskSecret isShown={shown !== undefined} />
    </Modal>
  );
}
