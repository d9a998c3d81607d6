import type { Values } from '../infra/postgres/statement.js';

/*
 * The one place that knows how the notifications about a main object are found: by their texts. The search for the text as it was
 * written (src/publishing/parse-notification.ts) is cheap and passes over nearly all of them; the rest is read as JSON, so that a
 * characteristic of the same name is not taken for it.
 */
export const isAbout = `CASE WHEN position($main_object_text IN body) > 0
  THEN body::json ->> 'hoofdObject' = $main_object ELSE false END`;

export const aboutValues = (mainObject: string): Values => ({
  main_object: mainObject,
  main_object_text: `"hoofdObject":${JSON.stringify(mainObject)}`,
});
