import { Input } from '@mantine/core';
import { useImperativeHandle, useRef, type ReactNode, type Ref } from 'react';
import classes from './text-area.module.css';

export interface TextAreaHandle {
  /** Puts the cursor there, and shows the line. @param line from 1 */
  goTo: (line: number, column: number) => void;
}

interface Props {
  label: string;
  value: string;
  onChange: (text: string) => void;
  /** From 1; they are marked. */
  markedLines: ReadonlySet<number>;
  isReadOnly: boolean;
  handle: Ref<TextAreaHandle>;
}

/** As few elements as there are marked lines: a configuration has tens of thousands. */
function numbers(count: number, markedLines: ReadonlySet<number>): ReactNode[] {
  const parts: ReactNode[] = [];
  let run = '';
  for (let line = 1; line <= count; line++) {
    if (!markedLines.has(line)) run += `${line}\n`;
    else {
      parts.push(run, <span key={line} className={classes.marked}>{`▸ ${line}\n`}</span>);
      run = '';
    }
  }
  return [...parts, run];
}

/** A text with the numbers of its lines. */
export function TextArea({ label, value, onChange, markedLines, isReadOnly, handle }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLDivElement>(null);
  const lines = value.split('\n');
  useImperativeHandle(handle, () => ({
    goTo: (line, column) => {
      const element = area.current;
      if (!element) return;
      const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
      element.focus();
      element.setSelectionRange(before + column - 1, before + (lines[line - 1]?.length ?? 0));
      const height = element.scrollHeight / lines.length;
      element.scrollTop = Math.max(0, (line - 5) * height);
    },
  }));
  return (
    <Input.Wrapper label={label} labelProps={{ htmlFor: 'configuration-text' }}>
      <div className={classes.frame} style={{ height: `clamp(240px, ${lines.length * 20 + 40}px, 480px)` }}>
        <div ref={gutter} className={classes.gutter} aria-hidden>
          {numbers(lines.length, markedLines)}
        </div>
        <textarea
          id="configuration-text"
          ref={area}
          className={classes.area}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value)}
          onScroll={(event) => {
            if (gutter.current) gutter.current.scrollTop = event.currentTarget.scrollTop;
          }}
          readOnly={isReadOnly}
          wrap="off"
          spellCheck={false}
          autoCapitalize="off"
          autoCorrect="off"
        />
      </div>
    </Input.Wrapper>
  );
}
