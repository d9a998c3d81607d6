import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { useRouter, type BlockerFn, type RouterHistory } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { defineTexts } from '../i18n/i18n.ts';

const useTexts = defineTexts(
  'leaving',
  {
    underWay: 'Leave before it is done?',
    underWayDetail:
      'Your request is under way, and goes on. If you leave now, you do not see what became of it: neither an error, nor a new secret, which is shown only once.',
    typed: 'Leave without saving?',
    typedDetail: 'Your input in “{{form}}” is not saved. It is kept only while this page is open.',
    secret: 'Leave without this secret?',
    secretDetail: 'It is shown only here and now. If you have not copied it, nobody has it.',
    stay: 'Stay',
    leave: 'Leave',
  },
  {
    underWay: 'Verlaten voordat het klaar is?',
    underWayDetail:
      'Uw verzoek is bezig, en gaat door. Als u nu weggaat, ziet u niet wat ervan werd: geen fout, en geen nieuw geheim, dat maar één keer getoond wordt.',
    typed: 'Verlaten zonder op te slaan?',
    typedDetail: 'Uw invoer in “{{form}}” is niet opgeslagen. Die blijft alleen zolang deze pagina open is.',
    secret: 'Verlaten zonder dit geheim?',
    secretDetail: 'Het wordt alleen hier en nu getoond. Als u het niet kopieerde, heeft niemand het.',
    stay: 'Blijven',
    leave: 'Verlaten',
  },
);

interface QuestionProps {
  opened: boolean;
  title: string;
  detail: string;
  onStay: () => void;
  onLeave: () => void;
}

export function LeaveQuestion({ opened, title, detail, onStay, onLeave }: QuestionProps) {
  const t = useTexts();
  return (
    <Modal opened={opened} onClose={onStay} title={title} centered>
      <Stack gap="sm">
        <Text size="sm">{detail}</Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onStay} data-autofocus>
            {t('stay')}
          </Button>
          <Button color="red" onClick={onLeave}>
            {t('leave')}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/**
 * Asks before a page is left while something that was asked for there is under way: it cannot be called back, and what
 * became of it has to be seen. A dialog that cannot be cancelled meanwhile has this, for Back, for keys and for the
 * window.
 */
export function AskUnderWay({ isBusy }: { isBusy: boolean }) {
  const t = useTexts();
  return <AskBeforeLeaving isBlocked={isBusy} title={t('underWay')} detail={t('underWayDetail')} />;
}

/**
 * Closes a dialog unless something is under way: it cannot be called back any more, and what became of it has to be
 * seen.
 */
export const unlessBusy = (isBusy: boolean, close: () => void) => (): void => {
  if (!isBusy) close();
};

/** Asks before a page is left while it shows what is shown only once. */
export function AskSecret({ isShown }: { isShown: boolean }) {
  const t = useTexts();
  return <AskBeforeLeaving isBlocked={isShown} title={t('secret')} detail={t('secretDetail')} />;
}

/**
 * Asks before the page is left with which the input of a form goes. Its dialog may be open or closed: the input is kept
 * until the page is left.
 * @param form its title
 */
export function AskTyped({ isTyped, form }: { isTyped: boolean; form: string }) {
  const t = useTexts();
  return (
    <AskBeforeLeaving
      isBlocked={isTyped}
      isLeaving={isOtherPage}
      title={t('typed')}
      detail={t('typedDetail', { form })}
    />
  );
}

interface AskProps {
  isBlocked: boolean;
  isLeaving?: (step: Step) => boolean;
  title: string;
  detail: string;
}

function AskBeforeLeaving({ isBlocked, isLeaving = isNoReplacement, ...said }: AskProps) {
  const { asked, stay } = useBlockedLeaving(isBlocked, isLeaving);
  return <LeaveQuestion {...said} opened={asked !== undefined} onStay={stay} onLeave={() => asked?.()} />;
}

/** From one address to another, and how. */
export type Step = Parameters<BlockerFn>[0];

const isOtherPage = ({ currentLocation, nextLocation }: Step): boolean =>
  currentLocation.pathname !== nextLocation.pathname;

/** By an address that the page itself puts in place of its own nobody leaves. */
const isNoReplacement = ({ action }: Step): boolean => action !== 'REPLACE';

/**
 * Unlike `useBlocker`, which leaves the browser at the other address for as long as it asks: an answer that came
 * meanwhile would change the address of the wrong page, and another Back would go on from there, past the question.
 * @param isLeaving of the same function each time
 */
export function useBlockedLeaving(
  isBlocked: boolean,
  isLeaving: (step: Step) => boolean,
): { asked: (() => void) | undefined; stay: () => void } {
  const history: RouterHistory = useRouter().history;
  const [asked, setAsked] = useState<() => void>();
  useEffect(() => {
    if (!isBlocked) return;
    const release = history.block({
      enableBeforeUnload: true,
      blockerFn: (step) => {
        if (!isLeaving(step)) return false;
        const { action, currentLocation, nextLocation } = step;
        const steps = nextLocation.state.__TSR_index - currentLocation.state.__TSR_index;
        const go = () => {
          const { href, state } = nextLocation;
          if (action === 'PUSH') history.push(href, state, { ignoreBlocker: true });
          else if (action === 'REPLACE') history.replace(href, state, { ignoreBlocker: true });
          else history.go(steps, { ignoreBlocker: true });
        };
        setAsked(() => go);
        return true;
      },
    });
    return () => {
      release();
      // With what it waited for, the question is over.
      setAsked(undefined);
    };
  }, [isBlocked, isLeaving, history]);
  return { asked, stay: () => setAsked(undefined) };
}
