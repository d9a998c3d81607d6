import { Badge, Button, Group, Modal, Stack, Text } from '@mantine/core';
import { TbCheck, TbSend, TbX } from 'react-icons/tb';
import { useMutation } from '@tanstack/react-query';
import { answerOf, api, reachReceiver } from '../../api/client.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useMay } from '../../shell/session.tsx';
import { useAlertTexts } from './texts.ts';

/** A button that sends a test to everybody who is told of alerts, and shows what came of it. */
export function SendTest() {
  const t = useAlertTexts();
  const [state, set] = useUrlState();
  const maySend = useMay('operator');
  const send = useMutation({ mutationFn: () => answerOf(api.POST('/admin/v1/alerts/test', { fetch: reachReceiver })) });
  if (!maySend) return null;
  return (
    <>
      <Button
        variant="default"
        leftSection={<TbSend size={16} aria-hidden />}
        onClick={() => set({ ask: 'test' }, true)}
      >
        {t('test')}
      </Button>
      <Confirm
        opened={oneOf(state['ask']) === 'test'}
        onClose={() => set({ ask: undefined })}
        title={t('testTitle')}
        action={t('test')}
        isDangerous={false}
        onConfirm={() => send.mutateAsync()}
      >
        {t('testDetail')}
      </Confirm>
      <Modal opened={send.isSuccess} onClose={() => send.reset()} title={t('testDone')} centered>
        <Stack gap="sm">
          {send.data?.results.length === 0 && (
            <>
              <Text size="sm">{t('testNobody')}</Text>
              <Text size="sm">{t('recipientsNone')}</Text>
            </>
          )}
          {send.data?.results.map(({ channel, recipient, isSent, error }) => (
            <Group key={`${channel} ${recipient}`} gap="xs" wrap="nowrap" align="flex-start">
              <Badge
                color={isSent ? 'green' : 'red'}
                variant="light"
                style={{ flexShrink: 0 }}
                leftSection={isSent ? <TbCheck size={12} aria-hidden /> : <TbX size={12} aria-hidden />}
              >
                {isSent ? t('sent') : t('notSent')}
              </Badge>
              <div style={{ minWidth: 0 }}>
                <Text size="sm" className="anywhere">
                  {recipient ?? channel}
                </Text>
                {error !== null && (
                  <Text size="xs" c="dimmed" className="anywhere">
                    {error}
                  </Text>
                )}
              </div>
            </Group>
          ))}
        </Stack>
      </Modal>
    </>
  );
}
