import { Skeleton, Tabs } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { loadPart } from '../../api/load-part.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useSettingsTexts } from './texts.ts';

/** Each comes with its own code when it is first opened. */
const tabs = {
  'retry-policy': lazy(() => loadPart(() => import('./retry-policy-tab.tsx'))),
  retention: lazy(() => loadPart(() => import('./retention/retention-tab.tsx'))),
  configuration: lazy(() => loadPart(() => import('./configuration/configuration-tab.tsx'))),
  installation: lazy(() => loadPart(() => import('./installation-tab.tsx'))),
} as const;
const names = Object.keys(tabs) as (keyof typeof tabs)[];

export function SettingsPage() {
  const t = useSettingsTexts();
  const [state, set] = useUrlState();
  const tab = names.find((name) => name === oneOf(state['tab'])) ?? 'retry-policy';
  const Shown = tabs[tab];
  return (
    <>
      <PageHeader title={t('title')} description={t('description')} />
      <Tabs value={tab} onChange={(next) => set({ tab: next ?? undefined }, true)}>
        <Tabs.List mb="md">
          {names.map((name) => (
            <Tabs.Tab key={name} value={name}>
              {t(name)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {names.map((name) => (
          <Tabs.Panel key={name} value={name}>
            {name === tab && (
              <Suspense fallback={<Skeleton height={420} radius="md" />}>
                <Shown />
              </Suspense>
            )}
          </Tabs.Panel>
        ))}
      </Tabs>
    </>
  );
}
