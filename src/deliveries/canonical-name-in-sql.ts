/** Of all capitals the only one that becomes two characters. */
const dottedI = '\u0130';
const dotted = `'${dottedI}', '${dottedI.toLowerCase()}'`;

/**
 * `canonicalName`, step by step, for names that are compared with given ones. The collation of a database decides which
 * letters its `lower` knows, and whether that of `I` is `ı`: with "C" it is those of ASCII, everywhere. The others are
 * given.
 * @param upper parameter: the letters of `lettersOf` the names to compare with
 */
export const canonicalNameInSql = (name: string, upper: string, lower: string): string =>
  String.raw`regexp_replace(regexp_replace(lower(translate(replace(regexp_replace(regexp_replace(${name} COLLATE "C",
    '([a-z0-9])([A-Z])', '\1_\2', 'g'), '([A-Z])([A-Z][a-z])', '\1_\2', 'g'),
    ${dotted}), ${upper}::text, ${lower}::text)), '_{2,}', '_', 'g'), '_(?=\d)|(?<=\d)_', '', 'g')`;

/** The small sigma at the end of a word is another one, for JavaScript alone. */
export const withoutFinalSigma = (name: string): string => name.replaceAll('ς', 'σ');

/** The letters whose small ones occur in canonical names, and those, in the same order, as `translate` wants them. */
export function lettersOf(names: readonly string[]): { upper: string; lower: string } {
  const pairs = [...new Set(withoutFinalSigma(names.join('')))].flatMap((small) =>
    (capitals().get(small) ?? []).map((capital) => [capital, small] as const),
  );
  return { upper: pairs.map(([capital]) => capital).join(''), lower: pairs.map(([, small]) => small).join('') };
}

let known: Map<string, string[]> | undefined;

/** Of each letter, those beyond ASCII that it is the small one of: of `k` also the sign for kelvin. */
function capitals(): ReadonlyMap<string, readonly string[]> {
  if (known) return known;
  known = new Map([['σ', ['ς']]]);
  // No letter beyond has a small one.
  for (let code = 0x80; code < 0x1_f000; code++) {
    const capital = String.fromCodePoint(code);
    const small = capital.toLowerCase();
    if (small === capital || capital === dottedI) continue;
    known.set(small, [...(known.get(small) ?? []), capital]);
  }
  return known;
}
