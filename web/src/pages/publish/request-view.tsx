import { Skeleton, Tabs, Text } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import { loadPart } from '../../api/load-part.ts';
import { apiRoot } from '../../api/client.ts';
import { curlOf } from './curl.ts';
import { usePublishTexts } from './texts.ts';

const JsonView = lazy(() => loadPart(() => import('../../parts/json-view.tsx')));

interface Props {
  body: object;
  headers: Readonly<Record<string, string>>;
}

/** The request that the form stands for: its body, and the same as a command. */
export function RequestView({ body, headers }: Props) {
  const t = usePublishTexts();
  const [tab, setTab] = useState<string | null>('curl');
  const url = new URL('admin/v1/notifications', apiRoot).href;
  return (
    <Tabs value={tab} onChange={setTab}>
      <Tabs.List>
        <Tabs.Tab value="curl">{t('asCurl')}</Tabs.Tab>
        <Tabs.Tab value="json">{t('asJson')}</Tabs.Tab>
      </Tabs.List>
      <Suspense fallback={<Skeleton height={260} mt="sm" />}>
        <Tabs.Panel value="curl" pt="sm">
          <JsonView code={curlOf({ url, headers, body })} language="bash" />
          <Text size="xs" c="dimmed" mt={4}>
            {t('curlDetail')}
          </Text>
        </Tabs.Panel>
        <Tabs.Panel value="json" pt="sm">
          <JsonView code={JSON.stringify(body, null, 2)} />
        </Tabs.Panel>
      </Suspense>
    </Tabs>
  );
}
