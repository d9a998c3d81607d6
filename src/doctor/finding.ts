/** `skipped`: it could not be looked at, because of something that another finding tells. */
export type Verdict = 'ok' | 'warning' | 'failed' | 'skipped';

/** One thing that was looked at. */
export interface Finding {
  /** Stable, for scripts. */
  name: string;
  verdict: Verdict;
  found: string;
  /** Only where it is not well. */
  advice?: string;
}

export const ok = (name: string, found: string): Finding => ({ name, verdict: 'ok', found });

export const skipped = (name: string, found: string): Finding => ({ name, verdict: 'skipped', found });

export const warning = (name: string, found: string, advice: string): Finding => ({
  name,
  verdict: 'warning',
  found,
  advice,
});

export const failed = (name: string, found: string, advice: string): Finding => ({
  name,
  verdict: 'failed',
  found,
  advice,
});
