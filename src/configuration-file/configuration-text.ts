import type { InvalidParam } from '../infra/http/problem.js';
import { configurationSchema } from './configuration-schema.js';
import { fitScalars } from './fit-scalars.js';
import { fromOpenNotificaties, type Note } from './from-open-notificaties.js';
import { isOpenNotificaties } from './open-notificaties-schema.js';
import { plainSecrets, resolveReferences, type Sources } from './resolve-references.js';
import { YamlText, type Place } from './yaml-text.js';

/** A file, as far as it can be read without a server. */
export interface ConfigurationText {
  /** For `plan` and `apply`. Only where there are no problems can it be applied. */
  configuration: unknown;
  /** `heraut.yaml:7:14 channels.0.retries: …`, each a line. */
  problems: string[];
  notes: string[];
  /** The lines of problems that a server finds in the configuration; not of those that are told already. */
  linesOf: (found: readonly InvalidParam[]) => string[];
}

/**
 * Reads a configuration file: Heraut's own, or that of Open Notificaties' `setup_configuration`, which is known by its keys.
 * @param file its name, for the lines
 */
export function readConfigurationText(text: string, file: string, sources: Sources): ConfigurationText {
  const yaml = new YamlText(text);
  const line = ({ line: nr, column }: Place, said: string) => `${file}:${nr}:${column} ${said}`;
  if (yaml.troubles.length > 0) {
    const problems = yaml.troubles.map(({ reason, ...place }) => line(place, reason));
    return { configuration: undefined, problems, notes: [], linesOf: () => [] };
  }
  // An empty file is an empty configuration.
  const raw = yaml.value ?? {};
  const { value, problems } = resolveReferences(raw, sources);
  const { configuration, found, notes, originOf } = convert(value, yaml);
  problems.push(...found);
  const at = (name: string, isOfKey: boolean, said: string) =>
    line(yaml.placeOf(name, { isOfKey }), name === '' ? said : `${name}: ${said}`);
  const told = new Set(problems.map(({ name }) => name));
  const lineOf = ({ name, code, reason }: InvalidParam) =>
    at(name, code === 'unknown', code === 'required' && reason.endsWith('received undefined') ? 'Is missing.' : reason);
  const secrets = plainSecrets(raw);
  return {
    configuration,
    problems: problems.map(lineOf),
    notes: [
      ...notes.map(({ name, note }) => at(name, true, note)),
      ...secrets.map((name) =>
        at(name, true, 'is a secret in plain text: rather take it from somewhere with value_from'),
      ),
    ],
    linesOf: (params) =>
      params
        .map((param) => ({ ...param, name: originOf(param.name) }))
        .filter(({ name }) => !told.has(name))
        .map(lineOf),
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
