import { decode, encode } from '@jridgewell/sourcemap-codec';

/**
 * Leaves of a source map where the lines of the sources begin. Node reads a map the first time it makes the stack of an error out of that file, which it
 * does for each socket that is closed with an error, and nothing else happens meanwhile.
 * @template {{ mappings: string }} Map
 * @param {Map} map
 * @returns {Map} with no columns and no names
 */
export function byLines(map) {
  const lines = decode(map.mappings).map((segments) =>
    segments
      .filter((segment, nr) => !isSameLine(segment, segments[nr - 1]))
      .map(
        ([column, source, line]) =>
          /** @type {Segment} */ (source === undefined ? [column] : [column, source, line, 0]),
      ),
  );
  return { ...map, names: [], mappings: encode(lines) };
}

/** @typedef {import('@jridgewell/sourcemap-codec').SourceMapSegment} Segment */

/**
 * @param {Segment} segment
 * @param {Segment | undefined} before
 */
const isSameLine = (segment, before) => before !== undefined && segment[1] === before[1] && segment[2] === before[2];
