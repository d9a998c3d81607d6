import { Alert, Badge, Button, Code, Group, Modal, ScrollArea, Stack, Table, Text } from '@mantine/core';
import { TbAlertTriangle, TbCheck, TbSend } from 'react-icons/tb';
import { useMutation } from '@tanstack/react-query';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerOf, api, reachReceiver } from '../../api/client.ts';
import { useFormat } from '../../i18n/format.ts';
import { defineTexts } from '../../i18n/i18n.ts';
import { BusyButton } from '../../parts/busy-button.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { useErrorClassTexts } from '../../parts/error-class.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';

type Result = components['schemas']['TestCall'];

const useTexts = defineTexts(
  'test-call',
  {
    title: 'Send a test notification',
    intro:
      'The receiver is called now, on channel test, with the credentials and signatures of this subscription, also where it is paused or disabled. Nothing is kept, retried or counted.',
    send: 'Send',
    again: 'Send again',
    close: 'Close',
    success: 'The receiver accepted it: {{status}}',
    refused: 'The receiver answered {{status}}',
    noAnswer: 'No answer',
    notSent: 'Nothing left this server, so the receiver has not seen it.',
    timing: 'Timing',
    connect: 'Connected after',
    firstByte: 'First byte after',
    total: 'In all',
    limit: 'Time limit',
    address: 'Address',
    webhookId: 'webhook-id',
    signed: 'signed',
    unsigned: 'not signed',
    headers: 'Headers of the answer',
    body: 'Beginning of its body',
    emptyBody: 'The answer has no body.',
    copyId: 'Copy the webhook-id',
  },
  {
    title: 'Een testnotificatie sturen',
    intro:
      'De ontvanger wordt nu aangeroepen, op kanaal test, met de inloggegevens en handtekeningen van dit abonnement, ook als het gepauzeerd of uitgeschakeld is. Er wordt niets bewaard, herhaald of geteld.',
    send: 'Sturen',
    again: 'Nog eens sturen',
    close: 'Sluiten',
    success: 'De ontvanger heeft haar aangenomen: {{status}}',
    refused: 'De ontvanger antwoordde {{status}}',
    noAnswer: 'Geen antwoord',
    notSent: 'Er is niets verstuurd, dus de ontvanger heeft het niet gezien.',
    timing: 'Tijden',
    connect: 'Verbonden na',
    firstByte: 'Eerste byte na',
    total: 'In totaal',
    limit: 'Tijdslimiet',
    address: 'Adres',
    webhookId: 'webhook-id',
    signed: 'ondertekend',
    unsigned: 'niet ondertekend',
    headers: 'Headers van het antwoord',
    body: 'Begin van het antwoord',
    emptyBody: 'Het antwoord is leeg.',
    copyId: 'Kopieer het webhook-id',
  },
);

interface Props {
  subscriptionId: string;
  opened: boolean;
  onClose: () => void;
}

export function TestCall({ subscriptionId, opened, onClose }: Props) {
  const t = useTexts();
  const call = useMutation({
    mutationFn: () =>
      answerOf(
        api.POST('/admin/v1/subscriptions/{subscriptionId}/test', {
          params: { path: { subscriptionId } },
          fetch: reachReceiver,
        }),
      ),
  });
  const close = () => {
    call.reset();
    onClose();
  };
  return (
    <Modal opened={opened} onClose={close} size="lg" title={t('title')}>
      <Stack gap="md">
        <Text size="sm">{t('intro')}</Text>
        <div aria-live="polite">{call.data && <Answer result={call.data} />}</div>
        {call.error && <ProblemAlert error={call.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            {t('close')}
          </Button>
          <BusyButton
            leftSection={<TbSend size={16} aria-hidden />}
            isBusy={call.isPending}
            onClick={() => call.mutate()}
            data-autofocus
          >
            {t(call.data || call.error ? 'again' : 'send')}
          </BusyButton>
        </Group>
      </Stack>
    </Modal>
  );
}

function Answer({ result }: { result: Result }) {
  const t = useTexts();
  const format = useFormat();
  const errorName = useErrorClassTexts();
  const { status, isSuccess, error, errorClass, wasSent } = result;
  const title = status === null ? t('noAnswer') : t(isSuccess ? 'success' : 'refused', { status: String(status) });
  const timings = [
    ['connect', result.connectMs],
    ['firstByte', result.firstByteMs],
    ['total', result.durationMs],
    ['limit', result.timeoutMs],
  ] as const;
  return (
    <Stack gap="sm">
      <Alert
        color={isSuccess ? 'green' : 'red'}
        variant="light"
        title={title}
        icon={isSuccess ? <TbCheck aria-hidden /> : <TbAlertTriangle aria-hidden />}
      >
        {(error !== null || !wasSent || errorClass !== null) && (
          <Stack gap={4}>
            {error !== null && (
              <Text size="sm" className="anywhere">
                {error}
              </Text>
            )}
            {!wasSent && <Text size="sm">{t('notSent')}</Text>}
            {errorClass !== null && (
              <div>
                <Badge variant="default">{errorName(errorClass)}</Badge>
              </div>
            )}
          </Stack>
        )}
      </Alert>
      <Table fz="sm" withTableBorder layout="fixed" aria-label={t('timing')}>
        <Table.Tbody>
          {timings.map(([name, ms]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{t(name)}</Table.Th>
              <Table.Td>{ms === null ? '–' : format.duration(ms)}</Table.Td>
            </Table.Tr>
          ))}
          <Table.Tr>
            <Table.Th scope="row">{t('address')}</Table.Th>
            <Table.Td className="anywhere">{result.address ?? '–'}</Table.Td>
          </Table.Tr>
          <Table.Tr>
            <Table.Th scope="row">{t('webhookId')}</Table.Th>
            <Table.Td className="anywhere">
              {result.webhookId} <CopyButton value={result.webhookId} label={t('copyId')} />{' '}
              <Badge variant="default">{t(result.isSigned ? 'signed' : 'unsigned')}</Badge>
            </Table.Td>
          </Table.Tr>
        </Table.Tbody>
      </Table>
      {status !== null && (
        <>
          <Text size="sm" fw={600}>
            {t('headers')}
          </Text>
          <Code
            block
            tabIndex={0}
            aria-label={t('headers')}
            role="region"
            style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}
          >
            {Object.entries(result.headers)
              .map(([name, value]) => `${name}: ${value}`)
              .join('\n') || '–'}
          </Code>
          <Text size="sm" fw={600}>
            {t('body')}
          </Text>
          {result.body === '' ? (
            <Text size="sm" c="dimmed">
              {t('emptyBody')}
            </Text>
          ) : (
            <ScrollArea.Autosize
              mah={240}
              type="auto"
              viewportProps={{ tabIndex: 0, 'aria-label': t('body'), role: 'region' }}
            >
              <Code block style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
                {result.body}
              </Code>
            </ScrollArea.Autosize>
          )}
        </>
      )}
    </Stack>
  );
}
