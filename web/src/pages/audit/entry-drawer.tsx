import { Anchor, Badge, Drawer, Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CopyButton } from '../../parts/copy-button.tsx';
import { FieldDiff } from '../../parts/field-diff.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { ExactTime } from '../../parts/relative-time.tsx';
import { SubjectLink } from '../../parts/subject-link.tsx';
import { comparedFields, findEntry, placeOf, type Entry } from './entries.ts';
import { useAuditTexts } from './texts.ts';

interface Props {
  /** Its place; undefined: it is closed. */
  place: string | undefined;
  /** Those that are listed. */
  listed: readonly Entry[];
  onClose: () => void;
}

/** One change: who, from where, and every field before and after. */
export function EntryDrawer({ place, listed, onClose }: Props) {
  const t = useAuditTexts();
  const known = listed.find((entry) => placeOf(entry) === place);
  const found = useQuery({
    queryKey: ['audit-entry', place],
    queryFn: ({ signal }) => findEntry(place!, signal),
    enabled: place !== undefined && known === undefined,
    staleTime: Infinity,
  });
  const entry = known ?? found.data;
  return (
    <Drawer opened={place !== undefined} onClose={onClose} position="right" size="xl" title={t('entry')}>
      {found.error && <ProblemAlert error={found.error} onRetry={() => void found.refetch()} />}
      {entry === null && <Text size="sm">{t('gone')}</Text>}
      {entry === undefined && !found.error && <Skeleton height={240} />}
      {entry && <EntryDetails entry={entry} />}
    </Drawer>
  );
}

function EntryDetails({ entry }: { entry: Entry }) {
  const t = useAuditTexts();
  const { at, action, subject, client, via, address, requestId, before, after } = entry;
  const fields = comparedFields(entry, t('secretChanged'));
  return (
    <Stack gap="sm">
      <Group gap="xs">
        <Text fw={600}>{action}</Text>
        {before === null && (
          <Badge color="green" variant="light">
            {t('created')}
          </Badge>
        )}
        {after === null && (
          <Badge color="red" variant="light">
            {t('removed')}
          </Badge>
        )}
      </Group>
      <Text size="sm" component="div" className="anywhere">
        <SubjectLink subject={subject} />
      </Text>
      <Text size="sm" component="div" c="dimmed">
        {client ?? t('system')} · <ExactTime at={at} />
        {via !== null && ` · ${t('via', { via })}`}
        {address !== null && ` · ${t('address')} ${address}`}
      </Text>
      {requestId !== null && (
        <Group gap={4} wrap="nowrap">
          <Text size="sm" c="dimmed" className="anywhere">
            {t('request')} {requestId}
          </Text>
          <CopyButton value={requestId} label={t('copyRequest')} />
        </Group>
      )}
      <Group gap="md">
        <Anchor component={Link} to="/audit" search={{ subject } as never} size="sm" py={2}>
          {t('sameSubject')}
        </Anchor>
        {client !== null && (
          <Anchor component={Link} to="/audit" search={{ client } as never} size="sm" py={2}>
            {t('sameClient')}
          </Anchor>
        )}
      </Group>
      {fields.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t('noFields')}
        </Text>
      ) : (
        <FieldDiff fields={fields} />
      )}
    </Stack>
  );
}
