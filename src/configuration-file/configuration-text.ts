import type { InvalidParam } from '../infra/http/problem.js';
import { configurationSchema } from './configuration-schema.js';
import { fitScalars } from './fit-scalars.js';
import { fromOpenNotificaties, type Note } from './from-open-notificaties.js';
import { isOpenNotificaties } from './open-notificaties-schema.js';
import { resolveCarriedOut } from './resolve-carried-out.js';
import { labelOf, plainSecrets, resolveReferences, type FoundReference, type Sources } from './resolve-references.js';
import { YamlText, type Place } from './yaml-text.js';

/** Something to be said of a place in a text. */
export interface Remark extends Place {
  /** Path of the field, as the text calls it; empty: the text as a whole. */
  field: string;
  said: string;
}

/** A reference in a text, and its place. */
export type PlacedReference = Place & Omit<FoundReference, 'name'> & { field: string };

/** A text, as far as it can be read without a server. */
export interface ConfigurationText {
  /** For `plan` and `apply`; undefined: it is no YAML. Only where there are no problems can it be applied. */
  configuration: unknown;
  problems: Remark[];
  notes: Remark[];
  references: PlacedReference[];
  /** The places of problems that a server finds in the configuration; not of those that are told already. */
  remarksOn: (found: readonly InvalidParam[]) => Remark[];
}

/** `heraut.yaml:7:14 channels.0.retries: …` */
export const asLine =
  (file: string) =>
  ({ line, column, field, said }: Remark): string =>
    `${file}:${line}:${column} ${field === '' ? said : `${field}: ${said}`}`;

/**
 * Reads a configuration: Heraut's own, or that of Open Notificaties' `setup_configuration`, which is known by its keys.
 */
export function readConfigurationText(text: string, sources: Sources): ConfigurationText {
  const yaml = new YamlText(text);
  if (yaml.troubles.length > 0) {
    const problems = yaml.troubles.map(({ reason, ...place }) => ({ ...place, field: '', said: reason }));
    return { configuration: undefined, problems, notes: [], references: [], remarksOn: () => [] };
  }
  // An empty text is an empty configuration.
  const raw = yaml.value ?? {};
  const { value, problems, references } = isOpenNotificaties(raw)
    ? resolveCarriedOut(raw, sources)
    : resolveReferences(raw, sources);
  const { configuration, found, notes, originOf } = convert(value, yaml);
  problems.push(...found);
  const at = (field: string, isOfKey: boolean, said: string) => ({ ...yaml.placeOf(field, { isOfKey }), field, said });
  const told = new Set(problems.map(({ name }) => name));
  const open = new Map(
    references.filter(({ isFollowed }) => !isFollowed).map(({ name, reference }) => [name, labelOf(reference)]),
  );
  const remarkOn = ({ name, code, reason }: InvalidParam) => {
    const label = sources.isPartial && code === 'required' ? open.get(name) : undefined;
    if (label !== undefined) return at(name, false, `${label} has no value here, and there is none that could stay.`);
    const isMissing = code === 'required' && reason.endsWith('received undefined');
    return at(name, code === 'unknown', isMissing ? 'Is missing.' : reason);
  };
  return {
    configuration,
    problems: problems.map(remarkOn),
    notes: [
      ...notes.map(({ name, note }) => at(name, true, note)),
      ...plainSecrets(raw).map((name) =>
        at(name, true, 'is a secret in plain text: rather take it from somewhere with value_from'),
      ),
    ],
    references: references.map(({ name, ...found }) => ({ ...yaml.placeOf(name), field: name, ...found })),
    remarksOn: (params) =>
      params
        .map((param) => ({ ...param, name: originOf(param.name) }))
        .filter(({ name }) => !told.has(name))
        .map(remarkOn),
  };
}

interface Conversion {
  configuration: unknown;
  found: InvalidParam[];
  notes: Note[];
  originOf: (name: string) => string;
}

function convert(value: unknown, yaml: YamlText): Conversion {
  const sourceOf = (name: string) => yaml.sourceOf(name);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const reason = `Is no configuration: a mapping with keys such as ${Object.keys(configurationSchema.shape).slice(0, 3).join(', ')} is wanted.`;
    return {
      configuration: undefined,
      found: [{ name: '', code: 'invalid', reason }],
      notes: [],
      originOf: (name) => name,
    };
  }
  if (!isOpenNotificaties(value)) {
    const configuration = fitScalars(configurationSchema, value, sourceOf);
    return { configuration, found: [], notes: [], originOf: (name) => name };
  }
  const { problems, ...converted } = fromOpenNotificaties(value, sourceOf);
  const own = Object.keys(value).filter((key) => Object.hasOwn(configurationSchema.shape, key));
  const mixed = own.map((name) => ({
    name,
    code: 'invalid',
    reason: 'Belongs in a file of its own: the others here are namespaces of Open Notificaties.',
  }));
  return {
    ...converted,
    found: [...problems, ...mixed],
    notes: converted.notes.filter(({ name }) => !own.includes(name)),
  };
}
