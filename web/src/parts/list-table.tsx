import { Box, Skeleton } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import {
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  type KeyboardEvent,
  type ReactNode,
  type Ref,
} from 'react';
import classes from './list-table.module.css';

export interface Column<Row> {
  key: string;
  header: string;
  /** Of the grid: '120px', 'minmax(180px, 1fr)'. */
  width: string;
  /** Where the table is narrower than 700 px; otherwise the same. */
  narrowWidth?: string;
  render: (row: Row) => ReactNode;
  /** Left out where the table is narrower than 700 px; what matters is in the others. */
  isWide?: boolean;
  align?: 'right';
}

interface Props<Row> {
  /** Name of the table for screen readers. */
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  /** Opens a row: a click anywhere on it, or Enter. The first cell should have a link to the same. */
  onOpen?: (row: Row) => void;
  /** Called when the end comes into view: load the next page. */
  onEnd?: () => void;
  isLoading?: boolean;
  /** Pixels; every row is that high, so that 100,000 of them stay smooth. */
  rowHeight?: number;
  /** Of the list at most, a CSS length; where the window is too low for that, some rows, and the page scrolls. */
  height?: string;
  isMarked?: (row: Row) => boolean;
  /**
   * Like a log: the end stays in view as rows come. `onFollow` tells whether it is in view, so that reading back is
   * left alone, and so is a row that has the focus: out of view it would not be in the document, and the focus nowhere.
   */
  isFollowing?: boolean;
  onFollow?: (isFollowing: boolean) => void;
  /** Scrolls to the end and has the focus go there: what asked for it may be gone then. */
  goToEnd?: Ref<() => void>;
}

/** A magnified window, and a phone held sideways, have some 300 pixels: less than is around a list. */
const leastHeight = '240px';

const hasFocusedRow = (scroller: HTMLElement): boolean => scroller.querySelector('[data-index]:focus-within') !== null;

/** A table of any length: only the rows in view are in the document. */
export function ListTable<Row>({
  label,
  columns,
  rows,
  keyOf,
  onOpen,
  onEnd,
  isLoading = false,
  rowHeight = 44,
  height = 'calc(100dvh - 260px)',
  isMarked,
  isFollowing = false,
  onFollow,
  goToEnd,
}: Props<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    getItemKey: (index) => keyOf(rows[index]!),
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  useEffect(() => {
    if (last >= rows.length - 20) onEnd?.();
  }, [last, rows.length, onEnd]);

  const drawn = useRef(rows);
  useLayoutEffect(() => {
    const [before, first] = [drawn.current, rows[0]];
    drawn.current = rows;
    if (!scroller.current || !onFollow) return;
    if (isFollowing && !hasFocusedRow(scroller.current)) scroller.current.scrollTop = scroller.current.scrollHeight;
    else if (first && before[0] && keyOf(before[0]) !== keyOf(first)) {
      // The oldest were let go of: what is being read stays where it is.
      const gone = before.findIndex((row) => keyOf(row) === keyOf(first));
      if (gone > 0) scroller.current.scrollTop -= gone * rowHeight;
    }
  }, [isFollowing, rows]);
  const tellWhere = () => {
    const { scrollHeight, scrollTop, clientHeight } = scroller.current!;
    onFollow?.(scrollHeight - scrollTop - clientHeight < rowHeight && !hasFocusedRow(scroller.current!));
  };

  useImperativeHandle(goToEnd, () => () => {
    scroller.current!.scrollTop = scroller.current!.scrollHeight;
    scroller.current!.focus({ preventScroll: true });
  });

  /** The row that a key asked for; one that is far away is drawn after the scrolling. */
  const wanted = useRef<number>(undefined);
  const focusWanted = () => {
    if (wanted.current === undefined) return;
    const row = scroller.current?.querySelector<HTMLElement>(`[data-index="${wanted.current}"]`);
    if (!row) return;
    wanted.current = undefined;
    row.focus();
  };
  useEffect(focusWanted);

  /** Arrows go from row to row, as in any list. */
  const move = (event: KeyboardEvent<HTMLDivElement>) => {
    // Ctrl+K is another key than k.
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = Number((event.target as HTMLElement).closest<HTMLElement>('[data-index]')?.dataset['index']);
    if (Number.isNaN(at)) return;
    if (event.key === 'Enter' && event.target === event.currentTarget.querySelector(`[data-index="${at}"]`))
      return onOpen?.(rows[at]!);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, j: at + 1, k: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined || to < 0 || to >= rows.length || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    wanted.current = to;
    virtual.scrollToIndex(to);
    focusWanted();
  };

  const wide = columns.map(({ width }) => width).join(' ');
  const narrow = columns
    .filter(({ isWide }) => !isWide)
    .map(({ width, narrowWidth = width }) => narrowWidth)
    .join(' ');
  const cells = (render: (column: Column<Row>) => ReactNode, role: 'cell' | 'columnheader') =>
    columns.map((column) => (
      <div
        key={column.key}
        role={role}
        className={`${classes.cell} ${column.isWide ? classes.wide : ''} ${column.align === 'right' ? classes.right : ''}`}
      >
        {render(column)}
      </div>
    ));
  return (
    <Box
      role="table"
      aria-label={label}
      aria-busy={isLoading}
      aria-rowcount={rows.length + 1}
      className={classes.table}
      style={{ '--wide-columns': wide, '--narrow-columns': narrow }}
    >
      <div role="rowgroup" className={classes.head}>
        <div role="row" aria-rowindex={1} className={classes.row}>
          {cells(({ header }) => header, 'columnheader')}
        </div>
      </div>
      {/* A region that scrolls has to be reachable by keyboard, also while it has no rows that are. */}
      <div
        role="rowgroup"
        ref={scroller}
        className={classes.scroller}
        style={{ maxHeight: `max(${height}, ${leastHeight})` }}
        tabIndex={onOpen && rows.length > 0 ? -1 : 0}
        onKeyDown={move}
        onScroll={onFollow && tellWhere}
        onFocus={onFollow && tellWhere}
        data-scroll-restoration-id={label}
      >
        <div role="presentation" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {items.map(({ index, start, key }) => {
            const row = rows[index]!;
            return (
              <div
                key={key}
                role="row"
                aria-rowindex={index + 2}
                data-index={index}
                data-marked={isMarked?.(row) || undefined}
                className={`${classes.row} ${classes.body} ${onOpen ? classes.opens : ''}`}
                style={{ height: rowHeight, transform: `translateY(${start}px)` }}
                tabIndex={onOpen ? 0 : undefined}
                onClick={(event) => {
                  // A link or a button in the row means itself.
                  if (!(event.target as HTMLElement).closest('a,button,input,label')) onOpen?.(row);
                }}
              >
                {cells((column) => column.render(row), 'cell')}
              </div>
            );
          })}
        </div>
      </div>
      {isLoading && (
        <div aria-hidden>
          {Array.from({ length: rows.length === 0 ? 8 : 1 }, (_, index) => (
            <div key={index} className={classes.waiting} style={{ height: rowHeight }}>
              <Skeleton height={12} radius="sm" />
            </div>
          ))}
        </div>
      )}
    </Box>
  );
}
