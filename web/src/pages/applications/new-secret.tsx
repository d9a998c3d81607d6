import { PasswordInput, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { ConfirmOver } from '../../drafts/confirm-over.tsx';
import type { Tagged } from '../../drafts/use-resource-draft.ts';
import { useFormat } from '../../i18n/format.ts';
import { told } from '../../parts/told.ts';
import { rotateSecret, writeApplication, type Application, type ShownSecret } from './applications.ts';
import { Lately } from './lately.tsx';
import { useApplicationTexts } from './texts.ts';

interface Props {
  current: Tagged<Application>;
  opened: boolean;
  onClose: () => void;
  onSecret: (shown: ShownSecret) => void;
  now: object;
  readAgain: () => Promise<unknown>;
  /** It was changed after the dialog was opened. */
  isOther: boolean;
}

/** Another secret: one that Heraut makes and shows once, or one that somebody has already. */
export function NewSecret({ current: { data, tag }, onClose, onSecret, isOther, ...over }: Props) {
  const { id, clientId, secretSetAt } = data;
  const t = useApplicationTexts();
  const format = useFormat();
  const [own, setOwn] = useState('');
  const change = async () => {
    if (own === '') return onSecret(await rotateSecret(id, tag));
    await writeApplication(id, { secret: own }, tag);
    told(t('secretSet', { name: clientId }));
  };
  return (
    <ConfirmOver
      {...over}
      onClose={() => {
        setOwn('');
        onClose();
      }}
      title={t('rotateTitle', { name: clientId })}
      action={t(own === '' ? 'rotate' : 'setSecret')}
      onConfirm={async () => {
        await change();
        void over.readAgain();
      }}
      remark={isOther && t(own === '' ? 'secretMoved' : 'ownSecretMoved', { at: format.time(secretSetAt) })}
    >
      <Stack gap="xs">
        <Text size="sm">{t('rotateDetail')}</Text>
        <Lately clientId={clientId} />
        <PasswordInput
          label={t('ownSecret')}
          description={t('secretHint')}
          value={own}
          onChange={(event) => setOwn(event.currentTarget.value)}
          autoComplete="new-password"
          visibilityToggleButtonProps={{ 'aria-label': t('showSecret') }}
        />
      </Stack>
    </ConfirmOver>
  );
}
