import { Alert, Anchor, Code, Stack, Text } from '@mantine/core';
import { TbAlertTriangle, TbInfoCircle } from 'react-icons/tb';
import type { components } from '../../../../generated/admin-api.d.ts';
import { InEnglish } from '../../../parts/in-english.tsx';
import { useConfigurationTexts } from './texts.ts';

export type Remark = components['schemas']['PlannedConfigurationText']['problems'][number];

interface Props {
  title: string;
  remarks: readonly Remark[];
  isProblem: boolean;
  onGoTo: (line: number, column: number) => void;
}

/** Remarks on places in the text; each leads there. */
export function Remarks({ title, remarks, isProblem, onGoTo }: Props) {
  const t = useConfigurationTexts();
  if (remarks.length === 0) return null;
  return (
    <Alert
      color={isProblem ? 'red' : 'blue'}
      variant="light"
      title={title}
      icon={isProblem ? <TbAlertTriangle aria-hidden /> : <TbInfoCircle aria-hidden />}
      role={isProblem ? 'alert' : undefined}
    >
      <Stack gap={4}>
        {remarks.map(({ line, column, field, said }, index) => (
          <Text key={index} size="sm" className="anywhere">
            <Anchor component="button" type="button" inherit onClick={() => onGoTo(line, column)}>
              {t('lineOf', { line, column })}
            </Anchor>{' '}
            {field !== '' && <Code>{field}</Code>} <InEnglish>{said}</InEnglish>
          </Text>
        ))}
      </Stack>
    </Alert>
  );
}
