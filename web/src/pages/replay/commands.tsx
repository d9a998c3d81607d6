import { Button, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api } from '../../api/client.ts';
import { isProblem } from '../../api/problem.ts';
import { useFormat } from '../../i18n/format.ts';
import { BusyButton } from '../../parts/busy-button.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { told } from '../../parts/told.ts';
import type { Replay } from '../../selection/selection.ts';
import { leftOf, useWorkTexts } from '../../selection/work.tsx';
import { useMay } from '../../shell/session.tsx';
import { useReplayTexts } from './texts.ts';

/** Pause, resume and cancel. */
export function Commands({ work }: { work: Replay }) {
  const t = useReplayTexts();
  const kindName = useWorkTexts();
  const format = useFormat();
  const may = useMay('operator');
  const client = useQueryClient();
  const [isAsking, setAsking] = useState(false);
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const params = { params: { path: { id: work.id } } };
  const done = (changed: Replay, title: string) => {
    client.setQueryData(['replay', work.id], changed);
    void client.invalidateQueries({ queryKey: ['replays'] });
    told(title);
  };
  const carryOut = async (verb: 'pause' | 'resume') => {
    setBusy(true);
    setError(undefined);
    try {
      if (verb === 'pause') done(await answerOf(api.POST('/admin/v1/replays/{id}/pause', params)), t('paused'));
      else done(await answerOf(api.POST('/admin/v1/replays/{id}/resume', params)), t('resumed'));
    } catch (failure) {
      setError(failure);
      void client.invalidateQueries({ queryKey: ['replay', work.id] });
    } finally {
      setBusy(false);
    }
  };
  const left = format.number(leftOf(work));
  const count = work.isCountComplete ? left : t('leftAtLeast', { count: left });
  return (
    <>
      {error !== undefined && (
        <div role="alert">
          {isProblem(error, 'replay-ended') ? (
            <Text size="sm">{t('changedMeanwhile')}</Text>
          ) : (
            <ProblemAlert error={error} />
          )}
        </div>
      )}
      {work.state === 'paused' ? (
        <BusyButton disabled={!may} isBusy={isBusy} onClick={() => void carryOut('resume')}>
          {t('resume')}
        </BusyButton>
      ) : (
        <BusyButton variant="default" disabled={!may} isBusy={isBusy} onClick={() => void carryOut('pause')}>
          {t('pause')}
        </BusyButton>
      )}
      <Button variant="default" disabled={!may} onClick={() => setAsking(true)}>
        {t('cancel')}
      </Button>
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={t('cancelTitle', { kind: kindName(work.kind), count: leftOf(work), shown: count })}
        action={t('cancelAction', { count })}
        onConfirm={async () =>
          done(await answerOf(api.POST('/admin/v1/replays/{id}/cancel', params)), t('wasCancelled'))
        }
      >
        {work.kind === 'replay' ? t('cancelText') : t('cancelOther')}
      </Confirm>
    </>
  );
}
