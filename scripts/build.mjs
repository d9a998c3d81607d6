// `npm run build`: compiles and joins the program, and builds the console. `npm start` and `npm test` do it by themselves.
import { buildAnew } from './ready-to-run.mjs';

await buildAnew();
