import { Badge, Code, Group, Paper, ScrollArea, Skeleton, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { answerOf, api } from '../api/client.ts';
import { useFormat } from '../i18n/format.ts';
import { defineTexts } from '../i18n/i18n.ts';
import { ProblemAlert } from '../parts/problem-alert.tsx';
import { RelativeTime } from '../parts/relative-time.tsx';

const useTexts = defineTexts(
  'installation',
  {
    servers: 'Servers',
    database: 'Ledger',
    queue: 'Queue',
    locks: 'Locks and seals',
    'kind-postgresql': 'PostgreSQL',
    'kind-embedded': 'Embedded database',
    'kind-rabbitmq': 'RabbitMQ',
    'kind-in-memory': 'In the memory of the process',
    'kind-redis': 'Redis',
    'kind-database': 'In the database',
    down: 'does not answer',
    up: 'works',
    size: 'Size',
    measured: 'measured',
    processes: 'Processes',
    processesDetail_one: 'One process, of version {{version}}.',
    processesDetail_other: '{{count}} processes; the one that gave this answer is of version {{version}}.',
    roles: 'Roles',
    version: 'Version',
    node: 'Node',
    host: 'Host',
    started: 'Started',
    heard: 'Last sign of life',
    alive: 'alive',
    silent: 'not heard of any more',
    this: 'this one',
    settings: 'Settings that differ from their defaults',
    settingsDetail: 'Of the process that gave this answer. Secrets are never shown, only that they are set.',
    settingsNone: 'All settings have their defaults.',
    name: 'Setting',
    value: 'Value',
    default: 'Default',
    hidden: 'set, not shown',
    noDefault: 'none',
  },
  {
    servers: 'Servers',
    database: 'Database',
    queue: 'Wachtrij',
    locks: 'Vergrendelingen en uitkomsten',
    'kind-postgresql': 'PostgreSQL',
    'kind-embedded': 'Ingebouwde database',
    'kind-rabbitmq': 'RabbitMQ',
    'kind-in-memory': 'In het geheugen van het proces',
    'kind-redis': 'Redis',
    'kind-database': 'In de database',
    down: 'antwoordt niet',
    up: 'werkt',
    size: 'Omvang',
    measured: 'gemeten',
    processes: 'Processen',
    processesDetail_one: 'Eén proces, versie {{version}}.',
    processesDetail_other: '{{count}} processen; het proces dat dit antwoord gaf heeft versie {{version}}.',
    roles: 'Rollen',
    version: 'Versie',
    node: 'Node',
    host: 'Machine',
    started: 'Gestart',
    heard: 'Laatste levensteken',
    alive: 'leeft',
    silent: 'laat niets meer van zich horen',
    this: 'dit proces',
    settings: 'Instellingen die afwijken van de standaard',
    settingsDetail: 'Van het proces dat dit antwoord gaf. Geheimen worden nooit getoond, alleen dat ze zijn ingesteld.',
    settingsNone: 'Alle instellingen staan op de standaard.',
    name: 'Instelling',
    value: 'Waarde',
    default: 'Standaard',
    hidden: 'ingesteld, niet getoond',
    noDefault: 'geen',
  },
);

const everyMs = 10_000;

/** The version, servers, processes and settings of this installation: a tab of the settings. */
export function Installation() {
  const t = useTexts();
  const format = useFormat();
  const { data, error, refetch } = useQuery({
    queryKey: ['installation'],
    queryFn: ({ signal }) => answerOf(api.GET('/admin/v1/installation', { signal })),
    refetchInterval: everyMs,
  });
  const problem = error && <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (!data && problem) return problem;
  if (!data)
    return (
      <Stack aria-hidden>
        <Skeleton height={150} />
        <Skeleton height={220} />
        <Skeleton height={260} />
      </Stack>
    );
  const { servers, processes, settings, version } = data;
  return (
    <Stack gap="lg">
      {problem}
      <Section title={t('servers')}>
        <Wide label={t('servers')}>
          <Table.Tbody>
            {(['database', 'queue', 'locks'] as const).map((name) => (
              <Table.Tr key={name}>
                <Table.Th scope="row">{t(name)}</Table.Th>
                <Table.Td>{t(`kind-${servers[name].kind}`)}</Table.Td>
                <Table.Td>{servers[name].version ?? ''}</Table.Td>
                <Table.Td>
                  <Badge variant="light" color={servers[name].isUp ? 'green' : 'red'}>
                    {t(servers[name].isUp ? 'up' : 'down')}
                  </Badge>
                </Table.Td>
                <Table.Td>
                  {name === 'database' && servers.database.bytes && (
                    <>
                      {t('size')} {format.bytes(servers.database.bytes.bytes)}, {t('measured')}{' '}
                      <RelativeTime at={servers.database.bytes.measuredAt} />
                    </>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Wide>
      </Section>
      <Section title={t('processes')} detail={t('processesDetail', { count: processes.length, version })}>
        <Wide label={t('processes')}>
          <Table.Thead>
            <Table.Tr>
              {(['roles', 'version', 'node', 'host', 'started', 'heard'] as const).map((name) => (
                <Table.Th key={name} scope="col">
                  {t(name)}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {processes.map((process) => (
              <Table.Tr key={process.id}>
                <Table.Td>
                  <Group gap={6}>
                    {process.roles.join(', ')}
                    {process.isThis && (
                      <Badge variant="light" color="blue">
                        {t('this')}
                      </Badge>
                    )}
                  </Group>
                </Table.Td>
                <Table.Td>{process.version ?? '–'}</Table.Td>
                <Table.Td>{process.node ?? '–'}</Table.Td>
                <Table.Td>{process.host ?? '–'}</Table.Td>
                <Table.Td>
                  <RelativeTime at={process.startedAt} />
                </Table.Td>
                <Table.Td>
                  <Group gap={6}>
                    <Badge variant="light" color={process.isAlive ? 'green' : 'red'}>
                      {t(process.isAlive ? 'alive' : 'silent')}
                    </Badge>
                    {!process.isAlive && <RelativeTime at={process.heardAt} />}
                  </Group>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Wide>
      </Section>
      <Section title={t('settings')} detail={settings.length === 0 ? t('settingsNone') : t('settingsDetail')}>
        {settings.length > 0 && (
          <Wide label={t('settings')}>
            <Table.Thead>
              <Table.Tr>
                {(['name', 'value', 'default'] as const).map((name) => (
                  <Table.Th key={name} scope="col">
                    {t(name)}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {settings.map((setting) => (
                <Table.Tr key={setting.name}>
                  <Table.Td>
                    <Code>{setting.name}</Code>
                  </Table.Td>
                  <Table.Td className="anywhere">
                    {setting.value ?? (
                      <Text size="sm" c="dimmed" span>
                        {t('hidden')}
                      </Text>
                    )}
                  </Table.Td>
                  <Table.Td className="anywhere">{setting.default ?? t('noDefault')}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Wide>
        )}
      </Section>
    </Stack>
  );
}

function Section({ title, detail, children }: { title: string; detail?: string; children: ReactNode }) {
  return (
    <section>
      <Title order={2}>{title}</Title>
      {detail && (
        <Text size="sm" c="dimmed">
          {detail}
        </Text>
      )}
      <div style={{ marginTop: 8 }}>{children}</div>
    </section>
  );
}

/** It scrolls by itself where the page is narrower than it. */
function Wide({ label, children }: { label: string; children: ReactNode }) {
  return (
    <Paper withBorder>
      <ScrollArea type="auto" viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': label }}>
        <Table miw={560} verticalSpacing="xs">
          {children}
        </Table>
      </ScrollArea>
    </Paper>
  );
}
