import { ActionIcon, CopyButton as MantineCopyButton, Tooltip } from '@mantine/core';
import { TbCheck, TbCopy } from 'react-icons/tb';
import { defineTexts } from '../i18n/i18n.ts';

const useTexts = defineTexts('copy', { copy: 'Copy', copied: 'Copied' }, { copy: 'Kopieer', copied: 'Gekopieerd' });

interface Props {
  value: string;
  /** Names the value that is copied, for screen readers: "Copy id". */
  label?: string;
}

export function CopyButton({ value, label }: Props) {
  const t = useTexts();
  return (
    <MantineCopyButton value={value} timeout={1500}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? t('copied') : (label ?? t('copy'))}>
          <ActionIcon
            variant="subtle"
            color="gray"
            size="sm"
            onClick={copy}
            aria-label={copied ? t('copied') : (label ?? t('copy'))}
          >
            {copied ? <TbCheck size={14} aria-hidden /> : <TbCopy size={14} aria-hidden />}
          </ActionIcon>
        </Tooltip>
      )}
    </MantineCopyButton>
  );
}
