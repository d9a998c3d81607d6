import { Button, Group, SegmentedControl, Skeleton, Text } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import { TbCheck, TbCopy, TbDownload } from 'react-icons/tb';
import { lazy, Suspense, useMemo, useState } from 'react';
import { loadPart } from '../../api/load-part.ts';
import { useFormat } from '../../i18n/format.ts';
import { EmptyState } from '../../parts/empty-state.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useNotificationTexts } from './notification-texts.ts';
import classes from './notification.module.css';

const JsonView = lazy(() => loadPart(() => import('../../parts/json-view.tsx')));

/** Characters: more take the browser seconds to lay out, so they come only when somebody asks. */
const mostShown = 100_000;

/** The text that receivers get: to read, and exactly. */
export function BodyTab({ id, body }: { id: string; body: string | null }) {
  const t = useNotificationTexts();
  const format = useFormat();
  const [state, set] = useUrlState();
  const [isWhole, setWhole] = useState(false);
  const clipboard = useClipboard({ timeout: 1500 });
  const isExact = oneOf(state['as']) === 'sent';
  const shown = useMemo(() => (body === null || isExact ? (body ?? '') : formatted(body)), [body, isExact]);
  const bytes = useMemo(() => new TextEncoder().encode(body ?? '').length, [body]);
  if (body === null) return <EmptyState title={t('erased')}>{t('erasedDetail')}</EmptyState>;
  const isCut = shown.length > mostShown && !isWhole;
  const text = isCut ? shown.slice(0, mostShown) : shown;
  const download = () => {
    const url = URL.createObjectURL(new Blob([body], { type: 'application/json' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = `${id}.json`;
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <>
      <Group justify="space-between" mb="xs" gap="xs">
        <Text size="sm" c="dimmed">
          {t('kept', { size: format.bytes(bytes) })}
        </Text>
        <Group gap="xs">
          <SegmentedControl
            size="xs"
            aria-label={t('body')}
            value={isExact ? 'sent' : 'formatted'}
            onChange={(value) => set({ as: value === 'sent' ? 'sent' : undefined })}
            data={[
              { value: 'formatted', label: t('formatted') },
              { value: 'sent', label: t('asSent') },
            ]}
          />
          <Button
            size="xs"
            variant="default"
            leftSection={clipboard.copied ? <TbCheck size={14} aria-hidden /> : <TbCopy size={14} aria-hidden />}
            onClick={() => clipboard.copy(body)}
          >
            {t('copyBody')}
          </Button>
          <Button size="xs" variant="default" leftSection={<TbDownload size={14} aria-hidden />} onClick={download}>
            {t('download')}
          </Button>
        </Group>
      </Group>
      {isExact || shown.length > mostShown ? (
        <pre className={classes.text} tabIndex={0} aria-label={t('body')}>
          {text}
        </pre>
      ) : (
        <Suspense fallback={<Skeleton height={240} />}>
          <JsonView code={text} />
        </Suspense>
      )}
      {isCut && (
        <Group gap="xs" mt="xs">
          <Text size="sm">{t('part', { shown: format.bytes(mostShown), all: format.bytes(bytes) })}</Text>
          <Button size="xs" variant="default" onClick={() => setWhole(true)}>
            {t('showAll')}
          </Button>
        </Group>
      )}
    </>
  );
}

function formatted(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
