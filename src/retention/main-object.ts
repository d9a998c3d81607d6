import type { Values } from '../infra/postgres/statement.js';

/*
 * The one place that knows how the notifications about a main object are found: by their texts. The search for the text
 * as it was written (src/publishing/parse-notification.ts) is cheap and passes over nearly all of them; the rest is
 * read as JSON, so that a characteristic of the same name is not taken for it.
 *
 * Digests (docs/decisions/0040) are not asked which blocks may have it. They know what was there when they were
 * written: after a fail-over to a server whose clock is behind, new notifications get ids between those of an older
 * block, and are not in its filter. A search that misses such a one can be repeated by its id; an erasure that misses
 * it leaves what it says is gone.
 */
export const isAbout = `CASE WHEN position($main_object_text IN body) > 0
  THEN body::json ->> 'hoofdObject' = $main_object ELSE false END`;

export const aboutValues = (mainObject: string): Values => ({
  main_object: mainObject,
  main_object_text: `"hoofdObject":${JSON.stringify(mainObject)}`,
});
