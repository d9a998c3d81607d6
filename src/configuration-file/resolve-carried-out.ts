import { flagIn, isFlag, namespaces } from './open-notificaties-schema.js';
import { resolveReferences, type Resolved, type Sources } from './resolve-references.js';

/**
 * A file of Open Notificaties with the references resolved that stand in its flags and in the namespaces that these
 * have carried out. Those elsewhere are for other programs: here their variables and files need not exist.
 */
export function resolveCarriedOut(file: Record<string, unknown>, sources: Sources): Resolved {
  const flags = resolvePart(file, isFlag, sources);
  const isEnabled = new Set<string>(
    Object.entries(namespaces).flatMap(([name, { flag }]) => (flagIn(flags.value, flag) === true ? [name] : [])),
  );
  const enabled = resolvePart(file, (key) => isEnabled.has(key), sources);
  const others = partOf(file, (key) => !isFlag(key) && !isEnabled.has(key));
  return {
    value: { ...others, ...flags.value, ...enabled.value },
    problems: [...flags.problems, ...enabled.problems],
    references: [...flags.references, ...enabled.references],
  };
}

const resolvePart = (file: Record<string, unknown>, isOfIt: (key: string) => boolean, sources: Sources) => {
  const resolved = resolveReferences(partOf(file, isOfIt), sources);
  return { ...resolved, value: resolved.value as Record<string, unknown> };
};

const partOf = (file: Record<string, unknown>, isOfIt: (key: string) => boolean): Record<string, unknown> =>
  Object.fromEntries(Object.entries(file).filter(([key]) => isOfIt(key)));
