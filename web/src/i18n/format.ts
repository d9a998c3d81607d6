import { useTranslation } from 'react-i18next';

/** Numbers and times as the chosen language writes them, in the zone of the viewer. */
export interface Format {
  /** 12,345 */
  number(value: number): string;
  /** At most three figures: 12.3, 1.2K. */
  short(value: number): string;
  /** 99.95 % of a share between 0 and 1. */
  percent(share: number): string;
  /** 340 ms, 2.5 s, 3 min, 2 h, 4 d. */
  duration(milliseconds: number): string;
  /** With date, seconds and zone: an hour that is there twice in autumn has two names. */
  time(at: string | number | Date): string;
  /** Only hour, minute and second. */
  clock(at: string | number | Date): string;
  /** As `clock` where that is of today, otherwise as `time`: a page may be open for days. */
  asOf(at: number, now?: number): string;
  /** "3 minutes ago", "in 2 hours". */
  relative(at: string | number | Date, asOf?: number): string;
  bytes(value: number): string;
  /** Between a number and its fraction. */
  decimalSeparator: string;
}

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

const made = new Map<string, Format>();

export function formatFor(language: string): Format {
  const known = made.get(language);
  if (known) return known;
  const number = new Intl.NumberFormat(language);
  const short = new Intl.NumberFormat(language, { notation: 'compact', maximumSignificantDigits: 3 });
  const percent = new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: 2 });
  const time = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'long' });
  const clock = new Intl.DateTimeFormat(language, { timeStyle: 'medium' });
  // In numbers: "yesterday" would be said of what is 47 hours old, and may be two dates ago.
  const relative = new Intl.RelativeTimeFormat(language, { numeric: 'always' });
  const now = new Intl.RelativeTimeFormat(language, { numeric: 'auto' }).format(0, 'second');
  const unit = (value: number, name: string, digits = 0) =>
    new Intl.NumberFormat(language, {
      style: 'unit',
      unit: name,
      // Short, it is "215 byte".
      unitDisplay: name === 'byte' ? 'long' : 'short',
      maximumFractionDigits: digits,
    }).format(value);
  const format: Format = {
    number: (value) => number.format(value),
    short: (value) => short.format(value),
    // Rounding must make neither a hundred of what is less, nor nothing of what is more.
    percent: (share) => percent.format(share <= 0 || share >= 1 ? share : Math.min(Math.max(share, 0.0001), 0.9999)),
    duration: (milliseconds) => {
      const seconds = milliseconds / 1000;
      if (Math.round(milliseconds) < 1000) return unit(Math.round(milliseconds), 'millisecond');
      if (seconds < 120) return unit(seconds, 'second', seconds < 10 ? 1 : 0);
      if (seconds < 7_200) return unit(seconds / 60, 'minute');
      if (seconds < 172_800) return unit(seconds / 3_600, 'hour', seconds < 36_000 ? 1 : 0);
      return unit(seconds / 86_400, 'day', seconds < 864_000 ? 1 : 0);
    },
    time: (at) => time.format(new Date(at)),
    clock: (at) => clock.format(new Date(at)),
    asOf: (at, now = Date.now()) =>
      (new Date(at).toDateString() === new Date(now).toDateString() ? clock : time).format(at),
    relative: (at, asOf = Date.now()) => {
      const seconds = Math.round((new Date(at).getTime() - asOf) / 1000);
      if (seconds === 0) return now;
      const [name, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? ['second', 1];
      return relative.format(Math.trunc(seconds / size), name);
    },
    bytes: (value) => {
      const steps = ['byte', 'kilobyte', 'megabyte', 'gigabyte'] as const;
      const step = Math.min(steps.length - 1, Math.max(0, Math.floor(Math.log(Math.max(value, 1)) / Math.log(1000))));
      return unit(value / 1000 ** step, steps[step]!, step === 0 ? 0 : 1);
    },
    decimalSeparator: number.formatToParts(0.5).find(({ type }) => type === 'decimal')!.value,
  };
  made.set(language, format);
  return format;
}

/** English of the region that the browser is set to: 22 Nov 2026 and 16:04, or Nov 22, 2026 and 4:04 PM. */
const regionOf = (language: string): string =>
  navigator.languages.find((each) => each.split('-')[0] === language) ?? language;

export function useFormat(): Format {
  const { i18n } = useTranslation();
  return formatFor(regionOf(i18n.language));
}
