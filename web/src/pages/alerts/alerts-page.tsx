import { Tabs } from '@mantine/core';
import { PageHeader } from '../../parts/page-header.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { OpenAlerts } from './open-alerts.tsx';
import { PastAlerts } from './past-alerts.tsx';
import { AlertRulesEditor } from './rules-editor.tsx';
import { SendTest } from './send-test.tsx';
import { useAlertTexts } from './texts.ts';

const tabs = ['open', 'past', 'rules'] as const;

export function AlertsPage() {
  const t = useAlertTexts();
  const [state, set] = useUrlState();
  const tab = tabs.find((name) => name === oneOf(state['tab'])) ?? 'open';
  return (
    <>
      <PageHeader title={t('title')} description={t('description')}>
        <SendTest />
      </PageHeader>
      <Tabs
        value={tab}
        onChange={(next) =>
          set({ tab: next ?? undefined, rule: undefined, subject: undefined, alert: undefined }, true)
        }
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {tabs.map((name) => (
            <Tabs.Tab key={name} value={name}>
              {t(name)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="open">
          <OpenAlerts />
        </Tabs.Panel>
        <Tabs.Panel value="past">
          <PastAlerts />
        </Tabs.Panel>
        <Tabs.Panel value="rules">
          <AlertRulesEditor />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
