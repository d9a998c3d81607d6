import { Modal } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { ActOnSelection } from './act-on-selection.tsx';
import { useActTexts } from './act-texts.ts';
import type { Replay, Selection } from './selection.ts';

export interface Act {
  kind: 'replay' | 'close';
  selection: Selection;
}

interface Props {
  /** Undefined: it is closed. */
  act: Act | undefined;
  onClose: () => void;
  /** Before its page is opened. */
  onDone?: (work: Replay) => void;
}

/** Dry run, rate and confirmation in one dialog; then the page that shows how far it is. */
export function ActDialog({ act, onClose, onDone }: Props) {
  const t = useActTexts();
  const navigate = useNavigate();
  return (
    <Modal
      opened={act !== undefined}
      onClose={onClose}
      title={act?.kind === 'close' ? t('titleClose') : t('titleSend')}
      closeButtonProps={{ 'aria-label': t('closeDialog') }}
      size="lg"
      centered
    >
      {act && (
        <ActOnSelection
          kind={act.kind}
          selection={act.selection}
          onCancel={onClose}
          onDone={(work) => {
            onClose();
            onDone?.(work);
            void navigate({ to: '/replays/$id', params: { id: work.id } });
          }}
        />
      )}
    </Modal>
  );
}
