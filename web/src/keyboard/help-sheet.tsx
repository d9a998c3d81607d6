import { Group, Kbd, Modal, SimpleGrid, Stack, Switch, Text, Title } from '@mantine/core';
import { Fragment, type ReactNode } from 'react';
import { defineTexts } from '../i18n/i18n.ts';
import { useFocusWhereItWas } from '../parts/focus-return.ts';
import { useShellTexts } from '../shell/texts.ts';
import { goKeys } from './keys.ts';
import { useSingleKeys } from './single-keys.ts';

const useTexts = defineTexts(
  'shortcuts',
  {
    title: 'Keyboard shortcuts',
    anywhere: 'Anywhere',
    palette: 'Go to a page, a channel, a subscription, or what has an id',
    help: 'Show this sheet',
    leave: 'Close a dialog',
    lists: 'In lists',
    next: 'Next row',
    former: 'Former row',
    ends: 'First and last row',
    open: 'Open the row',
    goTo: 'Go to',
    or: 'or',
    andThen: 'then',
    singleKeys: 'Keys of one letter',
    singleKeysDetail: 'Switch them off if you hit them by accident or speak to your computer. Ctrl+K goes on working.',
    notWhileTyping: 'None of them does anything while you type.',
  },
  {
    title: 'Sneltoetsen',
    anywhere: 'Overal',
    palette: 'Ga naar een pagina, een kanaal, een abonnement, of iets met een id',
    help: 'Toon dit overzicht',
    leave: 'Sluit een venster',
    lists: 'In lijsten',
    next: 'Volgende rij',
    former: 'Vorige rij',
    ends: 'Eerste en laatste rij',
    open: 'Open de rij',
    goTo: 'Ga naar',
    or: 'of',
    andThen: 'dan',
    singleKeys: 'Toetsen van één letter',
    singleKeysDetail: 'Zet ze uit als u ze per ongeluk raakt of tegen uw computer praat. Ctrl+K blijft werken.',
    notWhileTyping: 'Geen ervan doet iets terwijl u typt.',
  },
);

export default function HelpSheet({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const page = useShellTexts();
  useFocusWhereItWas();
  const [singleKeys, setSingleKeys] = useSingleKeys();
  const or = ` ${t('or')} `;
  return (
    <Modal opened onClose={onClose} title={t('title')} size="lg">
      <Stack>
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="xl">
          <Stack gap="lg">
            <Section title={t('anywhere')}>
              <Shortcut does={t('palette')}>
                <Keys keys={['Ctrl', 'K']} between=" + " />
                {or}
                <Kbd>/</Kbd>
              </Shortcut>
              <Shortcut does={t('help')}>
                <Kbd>?</Kbd>
              </Shortcut>
              <Shortcut does={t('leave')}>
                <Kbd>Esc</Kbd>
              </Shortcut>
            </Section>
            <Section title={t('lists')}>
              <Shortcut does={t('next')}>
                <Keys keys={['j', '↓']} between={or} />
              </Shortcut>
              <Shortcut does={t('former')}>
                <Keys keys={['k', '↑']} between={or} />
              </Shortcut>
              <Shortcut does={t('ends')}>
                <Keys keys={['Home', 'End']} between={or} />
              </Shortcut>
              <Shortcut does={t('open')}>
                <Kbd>Enter</Kbd>
              </Shortcut>
            </Section>
          </Stack>
          <Section title={t('goTo')}>
            {Object.entries(goKeys).map(([key, name]) => (
              <Shortcut key={key} does={page(name)}>
                <Keys keys={['g', key]} between={` ${t('andThen')} `} />
              </Shortcut>
            ))}
          </Section>
        </SimpleGrid>
        <Switch
          label={t('singleKeys')}
          description={`${t('notWhileTyping')} ${t('singleKeysDetail')}`}
          checked={singleKeys === 'on'}
          onChange={(event) => setSingleKeys(event.currentTarget.checked ? 'on' : 'off')}
        />
      </Stack>
    </Modal>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div>
      <Title order={3} mb={6}>
        {title}
      </Title>
      <Stack gap={6}>{children}</Stack>
    </div>
  );
}

function Shortcut({ does, children }: { does: string; children: ReactNode }) {
  return (
    <Group justify="space-between" gap="sm" wrap="nowrap" align="flex-start">
      <Text size="sm">{does}</Text>
      <Text size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }} component="div">
        {children}
      </Text>
    </Group>
  );
}

const Keys = ({ keys, between }: { keys: readonly string[]; between: string }) =>
  keys.map((key, index) => (
    <Fragment key={key}>
      {index > 0 && between}
      <Kbd>{key}</Kbd>
    </Fragment>
  ));
