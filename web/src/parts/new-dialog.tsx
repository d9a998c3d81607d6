import type { ReactNode } from 'react';
import { FormDialog } from './form-dialog.tsx';
import { AskTyped } from './leaving.tsx';
import { ProblemAlert } from './problem-alert.tsx';

interface Props {
  opened: boolean;
  onClose: () => void;
  /** Of the dialog, and of the button that makes it: "Add channel". */
  title: string;
  /** Of the last try; what was typed stays. */
  error: unknown;
  isBusy: boolean;
  /** There is input, which goes with the page. */
  isTyped: boolean;
  /** The input can be sent. */
  isReady?: boolean;
  onSubmit: () => void;
  children: ReactNode;
}

/** The form of something new. */
export function NewDialog({ title, error, isTyped, isReady = true, children, ...dialog }: Props) {
  return (
    <>
      <FormDialog
        {...dialog}
        title={title}
        size="lg"
        gap="md"
        closeOnClickOutside={false}
        submit={{ text: title, isReady }}
      >
        {children}
        {error !== null && <ProblemAlert error={error} />}
      </FormDialog>
      <AskTyped isTyped={isTyped && !dialog.isBusy} form={title} />
    </>
  );
}
