import { Table, Text } from '@mantine/core';
import type { components } from '../../../../generated/admin-api.d.ts';
import { useFormat } from '../../../i18n/format.ts';
import { englishPart, PartlyEnglish } from '../../../parts/in-english.tsx';
import { useRetentionTexts } from './texts.ts';

type Day = components['schemas']['Retention']['days'][number];

/** At most 500, the newest first. */
export function DaysTable({ days }: { days: readonly Day[] }) {
  const t = useRetentionTexts();
  const format = useFormat();
  if (days.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {t('noReport')}
      </Text>
    );
  const noteOf = ({ bodies, keptUnfinishedAt, exportFailure, dropped }: Day) =>
    [
      bodies?.isUnderWay && t('underWay'),
      // It is told of a day that was dropped later, too.
      keptUnfinishedAt !== null && dropped === null && t('stillNeeded'),
      exportFailure && t('exportFailed', { reason: englishPart(exportFailure.reason) }),
    ]
      .filter(Boolean)
      .join('; ');
  return (
    <Table.ScrollContainer minWidth={460} mah={420} tabIndex={0} type="native">
      <Table stickyHeader>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('day')}</Table.Th>
            <Table.Th ta="right">{t('texts')}</Table.Th>
            <Table.Th>{t('file')}</Table.Th>
            <Table.Th>{t('dropped')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {days.map((day) => (
            <Table.Tr key={day.day}>
              <Table.Td>
                {day.day}
                {noteOf(day) && (
                  <Text size="xs" c="dimmed">
                    <PartlyEnglish>{noteOf(day)}</PartlyEnglish>
                  </Text>
                )}
              </Table.Td>
              <Table.Td ta="right">
                {day.bodies ? `${format.number(day.bodies.erased)} (${format.bytes(day.bodies.erasedBytes)})` : '–'}
              </Table.Td>
              <Table.Td className="anywhere">{day.exported?.file ?? '–'}</Table.Td>
              <Table.Td>
                {day.dropped
                  ? day.dropped.notifications === null
                    ? format.bytes(day.dropped.bytes)
                    : `${t('notifications', { count: day.dropped.notifications })}, ${format.bytes(day.dropped.bytes)}`
                  : '–'}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
