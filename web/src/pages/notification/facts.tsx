import { Badge, Button, Group, Paper, TextInput } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { AnchorLink } from '../../parts/links.tsx';
import { useFormat } from '../../i18n/format.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { ExactTime } from '../../parts/relative-time.tsx';
import { characteristicValue } from '../notifications/criteria.ts';
import classes from './notification.module.css';
import { useNotificationTexts } from './notification-texts.ts';
import type { Content, WholeNotification } from './whole-notification.ts';

const mostAtOnce = 12;

/**
 * The subject of a notification. All of it was written by a publisher: text, in any direction, never a link of theirs.
 */
export function Facts({ whole, content }: { whole: WholeNotification; content: Content }) {
  const t = useNotificationTexts();
  const seek = (name: string, value: string) => (
    <AnchorLink inherit to="/notifications" search={{ [name]: value }}>
      <bdi>{value}</bdi>
    </AnchorLink>
  );
  const withCopy = (value: string, shown: ReactNode) => (
    <Group gap={4} wrap="nowrap">
      <span className={classes.long}>{shown}</span>
      <CopyButton value={value} />
    </Group>
  );
  const facts: [string, ReactNode][] = [
    [t('channel'), seek('channel', whole.channel)],
    [t('publisher'), seek('publisher', whole.publisher)],
    [t('accepted'), <ExactTime at={whole.acceptedAt} />],
    ...(whole.notBefore ? [[t('notBefore'), <ExactTime at={whole.notBefore} />] as [string, ReactNode]] : []),
    ...(whole.key === null ? [] : [[t('key'), seek('key', whole.key)] as [string, ReactNode]]),
    ...(content.mainObject === undefined
      ? []
      : [
          [t('mainObject'), withCopy(content.mainObject, seek('mainObject', content.mainObject))] as [
            string,
            ReactNode,
          ],
        ]),
    ...(content.resourceUrl === undefined || content.resourceUrl === content.mainObject
      ? []
      : [
          [t('resourceUrl'), withCopy(content.resourceUrl, seek('resourceUrl', content.resourceUrl))] as [
            string,
            ReactNode,
          ],
        ]),
    ...(content.created === undefined ? [] : [[t('created'), <bdi>{content.created}</bdi>] as [string, ReactNode]]),
    ...(whole.duplicates.length === 0
      ? []
      : [
          [t('duplicates'), whole.duplicates.map(({ publisher, key }) => `${publisher}: ${key}`).join(', ')] as [
            string,
            ReactNode,
          ],
        ]),
  ];
  return (
    <Paper withBorder p="sm" mb="md">
      <dl className={classes.facts}>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {content.characteristics.length > 0 && <Characteristics all={content.characteristics} />}
    </Paper>
  );
}

function Characteristics({ all }: { all: Content['characteristics'] }) {
  const t = useNotificationTexts();
  const format = useFormat();
  const [isWhole, setWhole] = useState(false);
  const [sought, setSought] = useState('');
  const found = all.filter(([name, value]) => `${name} ${value}`.toLowerCase().includes(sought.toLowerCase()));
  const count = format.number(all.length);
  return (
    <div className={classes.characteristics}>
      {!isWhole && (
        <Group gap={6} component="ul" aria-label={t('characteristics')} className={classes.plain}>
          {all.slice(0, mostAtOnce).map(([name, value]) => (
            <li key={name} className={classes.characteristic}>
              <Characteristic name={name} value={value} />
            </li>
          ))}
          {all.length > mostAtOnce && (
            <li>
              <Button size="compact-xs" variant="subtle" onClick={() => setWhole(true)}>
                {t('allCharacteristics', { count })}
              </Button>
            </li>
          )}
        </Group>
      )}
      {isWhole && (
        <>
          <Group mb="xs" gap="xs">
            <TextInput
              size="xs"
              w={280}
              aria-label={t('searchIn', { count })}
              placeholder={t('searchIn', { count })}
              value={sought}
              onChange={(event) => setSought(event.currentTarget.value)}
            />
            <Button size="compact-xs" variant="subtle" onClick={() => setWhole(false)}>
              {t('fewer')}
            </Button>
          </Group>
          <ListTable
            label={t('characteristics')}
            rows={found}
            keyOf={([name]) => name}
            rowHeight={30}
            height="300px"
            columns={[
              { key: 'name', header: t('name'), width: 'minmax(90px, 1fr)', render: ([name]) => <bdi>{name}</bdi> },
              {
                key: 'value',
                header: t('value'),
                width: 'minmax(120px, 2fr)',
                render: ([, value]) => <bdi title={value.slice(0, 2000)}>{value.slice(0, 500)}</bdi>,
              },
            ]}
          />
        </>
      )}
    </div>
  );
}

function Characteristic({ name, value }: { name: string; value: string }) {
  const sought = characteristicValue(name, value);
  const shown = (
    <>
      <bdi>{name.slice(0, 200)}</bdi>: <bdi>{value.slice(0, 200)}</bdi>
    </>
  );
  if (sought === undefined)
    return (
      <Badge variant="default" fw={400} maw="100%">
        {shown}
      </Badge>
    );
  return (
    <Badge
      variant="default"
      fw={400}
      maw="100%"
      renderRoot={(props) => <Link to="/notifications" search={{ characteristic: sought }} {...props} />}
      style={{ cursor: 'pointer' }}
    >
      {shown}
    </Badge>
  );
}
