import type { FieldChange } from './fields-that-differ.js';
import { sectionNames, type Plan, type PlannedChange, type SectionName } from './planning.js';

const titles: Readonly<Record<SectionName, string>> = {
  applications: 'Applications',
  channels: 'Channels',
  subscriptions: 'Subscriptions',
  alertRules: 'Alert rules',
  retryPolicy: 'Retry policy',
};
const signs = { create: '+', change: '~', remove: '-' } as const;
const longestValue = 200;
/** Of what two long values have in common, so much is shown before the place where they differ. */
const shownBefore = 60;

/**
 * A plan for people: what is created, changed field by field, and removed; then how much stays as it is.
 * @param verb the command that was given: of `apply`, it has been done
 */
export function renderPlan({ changes, unchanged, unnamed }: Plan, verb: 'plan' | 'apply'): string {
  const sections = sectionNames.flatMap((section) => {
    const ofSection = changes.filter((change) => change.section === section);
    return ofSection.length === 0 ? [] : [titles[section], ...ofSection.flatMap(renderChange), ''];
  });
  const count = (action: PlannedChange['action']) => changes.filter((change) => change.action === action).length;
  const same = sectionNames.reduce((sum, section) => sum + unchanged[section], 0);
  const total =
    changes.length === 0
      ? `Nothing to change; ${same} as they should be.`
      : verb === 'plan'
        ? `${count('create')} to create, ${count('change')} to change, ${count('remove')} to remove; ${same} as they should be.`
        : `${count('create')} created, ${count('change')} changed, ${count('remove')} removed; ${same} were as they should be.`;
  return `${[...sections, total, ...renderUnnamed(unnamed)].map(inOneLine).join('\n')}\n`;
}

/** Names come from others too: a line break in one would make a line that looks as if the plan said it. */
const inOneLine = (line: string): string => line.replaceAll('\n', '\\n');

function renderChange({ action, key, about, fields, notes }: PlannedChange): string[] {
  return [
    `  ${signs[action]} ${key}${about === null ? '' : `  ${about}`}`,
    ...fields.map((field) => renderField(field, action)),
    ...notes.map((note) => `      Note: ${note}`),
  ];
}

function renderField(field: FieldChange, action: PlannedChange['action']): string {
  if ('secret' in field) return `      ${field.name}: (secret ${field.secret})`;
  const [before, after] = [JSON.stringify(field.before), JSON.stringify(field.after)];
  if (action === 'create') return `      ${field.name}: ${partOf(after, 0)}`;
  const from = startOf(before, after);
  return `      ${field.name}: ${partOf(before, from)} → ${partOf(after, from)}`;
}

/** Where long values are shown from: so that the first place where they differ is. */
function startOf(before: string, after: string): number {
  if (Math.max(before.length, after.length) <= longestValue) return 0;
  let same = 0;
  while (same < before.length && before[same] === after[same]) same += 1;
  return same <= shownBefore ? 0 : same - shownBefore;
}

function partOf(text: string, from: number): string {
  const to = from + longestValue;
  return `${from > 0 ? '…' : ''}${text.slice(from, to)}${text.length > to ? '…' : ''}`;
}

/** Channels are not named as what could be pruned: they are not removed. */
function renderUnnamed(unnamed: Plan['unnamed']): string[] {
  return (['applications', 'subscriptions', 'channels'] as const).flatMap((section) => {
    const { count, first } = unnamed[section];
    if (count === 0) return [];
    const rest = section === 'channels' ? 'channels stay' : '--prune removes them';
    const more = count > first.length ? `  … and ${count - first.length} more` : undefined;
    const heading = `Not in the file, and left as they are (${rest}): ${count} of ${section}.`;
    return [heading, ...first.map((one) => `  ${one}`), ...(more ? [more] : [])];
  });
}
