import { useElementSize } from '@mantine/hooks';
import { useRetryPolicyTexts } from './texts.ts';
import type { PlannedAttempt } from './use-preview.ts';
import classes from './schedule-chart.module.css';

interface Props {
  attempts: readonly PlannedAttempt[];
  /** In words, for those who do not see it. */
  summary: string;
}

const height = 190;
const margin = { top: 12, right: 8, bottom: 24, left: 48 };
/** Seconds and how they are written; those that lie within the delays get a line. */
const ticks: [number, string][] = [
  [0.01, '10 ms'],
  [0.1, '0.1 s'],
  [1, '1 s'],
  [10, '10 s'],
  [60, '1 min'],
  [600, '10 min'],
  [3600, '1 h'],
  [36_000, '10 h'],
  [86_400, '1 d'],
  [604_800, '7 d'],
];

/**
 * A bar for each attempt after the first, as high as its delay is long, on a scale of powers: the first ones would be
 * invisible otherwise.
 */
export function ScheduleChart({ attempts, summary }: Props) {
  const t = useRetryPolicyTexts();
  const { ref, width } = useElementSize<HTMLDivElement>();
  const retries = attempts.slice(1);
  const inner = { width: Math.max(width - margin.left - margin.right, 0), height: height - margin.top - margin.bottom };
  const longest = Math.max(...retries.map((each) => each.longestDelaySeconds), 1);
  const shortest = Math.max(Math.min(...retries.map((each) => each.shortestDelaySeconds), longest), 0.001);
  const [low, high] = [Math.log10(shortest / 3), Math.log10(longest * 1.3)];
  const y = (seconds: number) =>
    margin.top + inner.height * (1 - (Math.log10(Math.max(seconds, shortest / 3)) - low) / (high - low));
  const step = inner.width / Math.max(retries.length, 1);
  const bar = Math.max(Math.min(step * 0.7, 42), 1);
  const everyLabel = Math.ceil(retries.length / Math.max(Math.floor(inner.width / 28), 1));
  return (
    <div ref={ref} style={{ height }}>
      {width > 0 && (
        <svg width={width} height={height} role="img" aria-label={t('chart', { summary })} className={classes.chart}>
          {ticks
            .filter(([seconds]) => Math.log10(seconds) >= low && Math.log10(seconds) <= high)
            .map(([seconds, label]) => (
              <g key={seconds}>
                <line
                  x1={margin.left}
                  x2={width - margin.right}
                  y1={y(seconds)}
                  y2={y(seconds)}
                  className={classes.line}
                />
                <text x={margin.left - 6} y={y(seconds) + 4} textAnchor="end" className={classes.label}>
                  {label}
                </text>
              </g>
            ))}
          {retries.map((each, index) => {
            const middle = margin.left + step * (index + 0.5);
            const top = y(each.delaySeconds);
            const isRange = each.shortestDelaySeconds !== each.longestDelaySeconds;
            return (
              <g key={each.attempt} className={classes.bar}>
                <title>
                  {isRange
                    ? t('barRange', {
                        attempt: each.attempt,
                        shortest: seconds(each.shortestDelaySeconds),
                        longest: seconds(each.longestDelaySeconds),
                        elapsed: each.elapsed,
                      })
                    : t('bar', { attempt: each.attempt, delay: each.delay, elapsed: each.elapsed })}
                </title>
                <rect x={middle - step / 2} y={margin.top} width={step} height={inner.height} fill="transparent" />
                <rect
                  x={middle - bar / 2}
                  y={top}
                  width={bar}
                  height={Math.max(margin.top + inner.height - top, 1)}
                  rx={Math.min(3, bar / 3)}
                  className={classes.fill}
                />
                {isRange && (
                  <line
                    x1={middle}
                    x2={middle}
                    y1={y(each.longestDelaySeconds)}
                    y2={y(each.shortestDelaySeconds)}
                    className={classes.range}
                  />
                )}
                {index % everyLabel === 0 && (
                  <text x={middle} y={height - 8} textAnchor="middle" className={classes.label}>
                    {each.attempt}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
      )}
    </div>
  );
}

const seconds = (value: number) => `${Math.round(value * 10) / 10} s`;
