import { Alert, Button, Code, Group, Modal, Stack, Text } from '@mantine/core';
import { TbKey } from 'react-icons/tb';
import { defineTexts } from '../i18n/i18n.ts';
import { CopyButton } from './copy-button.tsx';
import { AskSecret } from './leaving.tsx';

const useTexts = defineTexts(
  'secret-dialog',
  { copy: 'Copy the secret', done: 'I have copied it' },
  { copy: 'Kopieer het geheim', done: 'Ik heb het gekopieerd' },
);

interface Props {
  /** Null: it is closed. */
  secret: string | null;
  title: string;
  /** Says for whom it is. */
  detail: string;
  /** Also gives the focus to where it was before: the question that the secret came after is gone. */
  onClose: () => void;
}

/** Shows a secret this once. Neither a click beside it nor Escape closes it. */
export function SecretDialog({ secret, title, detail, onClose }: Props) {
  const t = useTexts();
  return (
    <Modal
      opened={secret !== null}
      onClose={onClose}
      title={title}
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
      returnFocus={false}
      centered
    >
      {secret !== null && (
        <Stack gap="md">
          <Alert variant="light" color="orange" icon={<TbKey aria-hidden />}>
            <Text size="sm">{detail}</Text>
          </Alert>
          <Group gap="xs" wrap="nowrap">
            <Code block style={{ flex: 1, overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}>
              {secret}
            </Code>
            <CopyButton value={secret} label={t('copy')} />
          </Group>
          <Group justify="flex-end">
            <Button onClick={onClose} data-autofocus>
              {t('done')}
            </Button>
          </Group>
        </Stack>
      )}
      <AskSecret isShown={secret !== null} />
    </Modal>
  );
}
