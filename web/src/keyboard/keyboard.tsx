import { Button, Group, Kbd, Text } from '@mantine/core';
import { TbSearch } from 'react-icons/tb';
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from 'react';
import { loadPart } from '../api/load-part.ts';
import { Contained } from '../parts/contained.tsx';
import { useShellTexts } from '../shell/texts.ts';
import { isTextField, readKey, type KeyCommand } from './keys.ts';
import { useSingleKeys } from './single-keys.ts';

const Palette = lazy(() => loadPart(() => import('./palette.tsx')));
const HelpSheet = lazy(() => loadPart(() => import('./help-sheet.tsx')));

/** So long after `g` the next key may say where to go. */
const goWithinMs = 1_500;

type Open = 'palette' | 'help' | undefined;

/** The keys that work on every page, the palette, and the button that opens it for those who do not know its key. */
export function Keyboard() {
  const t = useShellTexts();
  const navigate = useNavigate();
  const [open, setOpen] = useState<Open>();
  const [singleKeys] = useSingleKeys();
  const gAt = useRef(Number.NEGATIVE_INFINITY);
  /**
   * Of the dialog that is open or comes: its code does when it is first opened, and until then what is typed is meant
   * for it.
   */
  const wanted = useRef<Open>(undefined);
  const early = useRef('');
  const show = useCallback((which: Open) => {
    wanted.current = which;
    early.current = '';
    setOpen(which);
  }, []);

  useEffect(() => {
    const act = (command: KeyCommand): boolean => {
      if (command.kind === 'go') void navigate({ to: `/${command.page}` });
      else if (command.kind === 'step') return focusList();
      else show(command.kind);
      return true;
    };
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing) return;
      if (wanted.current !== undefined && dialog() === null) {
        if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        early.current += event.key;
        return;
      }
      if (event.repeat) return;
      const { command, isG } = readKey(event, {
        isTyping: isTextField(event.target),
        isDialogOpen: dialog() !== null,
        hasSingleKeys: singleKeys === 'on',
        isAfterG: event.timeStamp - gAt.current < goWithinMs,
      });
      gAt.current = isG ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (command && act(command)) event.preventDefault();
    };
    // Behind React: what a part of the page has done with a key is done.
    window.addEventListener('keydown', onKeyDown);
    return () => window.removeEventListener('keydown', onKeyDown);
  }, [navigate, show, singleKeys]);

  const close = () => show(undefined);
  const readEarly = useCallback(() => early.current, []);
  return (
    <>
      <Button
        variant="default"
        size="xs"
        leftSection={<TbSearch size={14} aria-hidden />}
        onClick={() => show('palette')}
        aria-keyshortcuts="Control+K"
        aria-haspopup="dialog"
      >
        <Group gap="xs" wrap="nowrap">
          <Text span size="xs">
            {t('search')}
          </Text>
          <Kbd size="xs" visibleFrom="sm" aria-hidden>
            Ctrl K
          </Kbd>
        </Group>
      </Button>
      <Contained key={open}>
        <Suspense>
          {open === 'palette' && <Palette early={readEarly} onClose={close} onHelp={() => show('help')} />}
          {open === 'help' && <HelpSheet onClose={close} />}
        </Suspense>
      </Contained>
    </>
  );
}

const dialog = () => document.querySelector('[role="dialog"][aria-modal="true"]');

/** The list moves the focus itself while it is in it. @returns whether there was a list to enter */
function focusList(): boolean {
  if (document.activeElement?.closest('[data-index]')) return false;
  const row = document.querySelector<HTMLElement>('main [data-index][tabindex="0"]');
  row?.focus();
  return row !== null;
}
