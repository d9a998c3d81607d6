import { Modal } from '@mantine/core';
import { useState } from 'react';
import { unlessBusy } from '../parts/leaving.tsx';
import { useGoOn } from '../parts/use-go-on.ts';
import { ActOnSelection, nothingTyped, type Typed } from './act-on-selection.tsx';
import { useActTexts } from './act-texts.ts';
import type { Selection } from './selection.ts';

export interface Act {
  kind: 'replay' | 'close';
  selection: Selection;
}

interface Props {
  /** Undefined: it is closed. */
  act: Act | undefined;
  onClose: () => void;
}

/** Dry run, rate and confirmation in one dialog; then the page that shows how far it is. */
export function ActDialog({ act, onClose }: Props) {
  const t = useActTexts();
  const goOn = useGoOn();
  const [isBusy, setBusy] = useState(false);
  /** The input stays when the dialog is closed, and opened again for the same. */
  const [kept, setKept] = useState<{ act: string; typed: Typed }>();
  const asked = JSON.stringify(act);
  const leave = unlessBusy(isBusy, onClose);
  return (
    <Modal
      opened={act !== undefined}
      onClose={leave}
      title={act?.kind === 'close' ? t('titleClose') : t('titleSend')}
      size="lg"
      centered
    >
      {act && (
        <ActOnSelection
          kind={act.kind}
          selection={act.selection}
          onCancel={leave}
          onBusy={setBusy}
          kept={[kept?.act === asked ? kept.typed : nothingTyped, (typed) => setKept({ act: asked, typed })]}
          onDone={(work) => {
            setKept(undefined);
            onClose();
            void goOn({ to: '/replays/$id', params: { id: work.id } });
          }}
        />
      )}
    </Modal>
  );
}
