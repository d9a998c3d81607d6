import { Alert, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { TbTrash } from 'react-icons/tb';
import { defineTexts } from '../i18n/i18n.ts';

const useTexts = defineTexts(
  'gone-notice',
  { kept: 'Your input here stays for you to copy, and cannot be saved any more.' },
  { kept: 'Uw invoer hier blijft staan om te kopiëren, en kan niet meer worden opgeslagen.' },
);

interface Props {
  title: string;
  /** How that came about. */
  detail: string;
  /** The way out. */
  children?: ReactNode;
}

/** Above a form whose subject somebody else has removed since it was opened. */
export function GoneNotice({ title, detail, children }: Props) {
  const t = useTexts();
  return (
    <Alert color="red" variant="light" role="alert" icon={<TbTrash aria-hidden />} title={title} mb="md">
      <Text size="sm">
        {detail} {t('kept')}
      </Text>
      {children}
    </Alert>
  );
}
