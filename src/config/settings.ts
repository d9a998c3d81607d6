import * as z from 'zod';
import { accessSettings } from './access-settings.js';
import { deliverySettings } from './delivery-settings.js';
import { refusalOfDatabase } from './of-open-notificaties.js';
import { outerSettings } from './outer-settings.js';
import { serverSettings } from './server-settings.js';
import { checkTogether, needs } from './settings-together.js';

/**
 * Every setting Heraut reads, in the order in which an operator needs them. `docs/configuration.md` is generated from
 * the descriptions, so each says unit and consequence. An empty value counts as not set; white space around one is
 * refused where it makes a difference.
 */
export const settingsSchema = z
  .object({ ...serverSettings, ...accessSettings, ...deliverySettings, ...outerSettings })
  .superRefine(checkTogether);

export type Settings = z.output<typeof settingsSchema>;

/**
 * White space at an end is not seen: a blank would be the number 0, and the line break behind a secret a part of it.
 * Lists never keep it.
 */
function isPadded(name: keyof Settings, value: string): boolean {
  const trimmed = value.trim();
  if (trimmed === value) return false;
  const read = (text: string) => settingsSchema.shape[name].safeParse(text).data;
  return trimmed === '' || JSON.stringify(read(value)) !== JSON.stringify(read(trimmed));
}

export class InvalidSettings extends Error {}

/**
 * @throws {InvalidSettings} naming every wrong setting at once, but for those that are wrong only beside another one's
 *   value: they are compared when each is right by itself
 */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  const set = Object.fromEntries(
    Object.entries(environment).filter(([name, value]) => name in settingsSchema.shape && value),
  );
  const padded = Object.keys(set).filter((name) => isPadded(name as keyof Settings, set[name]!));
  const parsed = settingsSchema.safeParse(set);
  const missing = needs.filter(([name, needed]) => set[name] !== undefined && set[needed] === undefined);
  const database = refusalOfDatabase(environment);
  const lines = [
    ...padded.map((name) => `  ${name}: must not begin or end with white space`),
    ...(parsed.error?.issues ?? [])
      .filter(({ path }) => !padded.includes(String(path[0])))
      .map((issue) => `  ${issue.path.join('.') || 'settings'}: ${issue.message}`),
    ...missing.map(([name, needed]) => `  ${needed}: is needed with ${name}`),
    ...(database === undefined ? [] : [`  ${database}`]),
  ];
  if (parsed.success && lines.length === 0) return parsed.data;
  throw new InvalidSettings(
    `Heraut cannot start, these settings are wrong (see docs/configuration.md):\n${lines.join('\n')}`,
  );
}
