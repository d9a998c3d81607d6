// `npm run build`: compiles and joins the program, and builds the console. `npm start` and `npm test` do it by
// themselves.
import { buildAnew } from './ready-to-run.mjs';

try {
  await buildAnew();
} catch (error) {
  // The compiler has said what is wrong; a stack of this script would only stand below it.
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
