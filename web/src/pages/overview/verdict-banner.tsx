import { Alert, Group, Stack, Text } from '@mantine/core';
import { TbAlertTriangle, TbCircleCheck, TbExclamationCircle, TbInfoCircle } from 'react-icons/tb';
import { englishPart, PartlyEnglish } from '../../parts/in-english.tsx';
import { AnchorLink } from '../../parts/links.tsx';
import { useFormat } from '../../i18n/format.ts';
import classes from './overview.module.css';
import { useOverviewTexts, usePartName } from './texts.ts';
import { reasonsIn, severityOf, type Overview, type Reason } from './verdict.ts';

const looks = {
  bad: ['red', TbExclamationCircle],
  warn: ['orange', TbAlertTriangle],
  note: ['green', TbInfoCircle],
  fine: ['green', TbCircleCheck],
} as const;

/** The answer to "is anything wrong", in one sentence, and why: each reason leads to where it can be mended. */
export function Verdict({ overview }: { overview: Overview }) {
  const t = useOverviewTexts();
  const reasons = reasonsIn(overview);
  const severity = severityOf(reasons);
  const [color, Icon] = looks[severity];
  const count = reasons.filter((reason) => reason.severity === severity).length;
  const title = severity === 'fine' || severity === 'note' ? t(severity) : t(severity, { count });
  const groups = (['heraut', 'receivers'] as const)
    .map((of) => ({ of, reasons: reasons.filter((reason) => reason.of === of) }))
    .filter((group) => group.reasons.length > 0);
  return (
    <Alert
      color={color}
      variant="light"
      icon={<Icon aria-hidden />}
      className={classes.verdict}
      title={
        <Text inherit size="lg" fw={600} role="status" component="span">
          {title}
        </Text>
      }
    >
      {groups.length === 0 && <Text size="sm">{t('fineDetail')}</Text>}
      <Group gap="xl" align="flex-start">
        {groups.map(({ of, reasons: some }) => (
          <Stack gap={2} key={of}>
            <Text size="xs" c="dimmed" id={`reasons-${of}`}>
              {t(of)}
            </Text>
            <ul className={classes.reasons} aria-labelledby={`reasons-${of}`}>
              {some.map((reason) => (
                <li key={`${reason.key} ${reason.part?.name ?? ''}`}>
                  <ReasonLink reason={reason} />
                </li>
              ))}
            </ul>
          </Stack>
        ))}
      </Group>
    </Alert>
  );
}

function ReasonLink({ reason }: { reason: Reason }) {
  const t = useOverviewTexts();
  const format = useFormat();
  const partName = usePartName();
  const { key, count, severity, since, share, part, to, search } = reason;
  const Icon = looks[severity][1];
  const text = t(key, {
    count,
    shown: format.number(count),
    since: since === undefined ? '' : format.relative(since),
    share: share === undefined ? '' : format.percent(Math.round(share * 100) / 100),
    name: part && partName(part.name),
    error: part && (part.error === null ? t('partDown') : englishPart(part.error)),
  });
  return (
    <Group gap={6} wrap="nowrap" align="flex-start">
      <Icon size={16} role="img" aria-label={t(`severity-${severity}`)} style={{ flexShrink: 0, marginTop: 2 }} />
      <AnchorLink size="sm" title={since === undefined ? undefined : format.time(since)} to={to} search={search ?? {}}>
        <PartlyEnglish>{text}</PartlyEnglish>
      </AnchorLink>
    </Group>
  );
}
