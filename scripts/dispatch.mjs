// `npm run dispatch -- --once`: one round of the dispatcher, for cron. It may run at any time, and several times at once.
import { runProgram } from './run-program.mjs';

await runProgram('dispatch-once.js');
