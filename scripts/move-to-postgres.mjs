// `npm run move-to-postgres`: copies everything from the embedded database in DATA_DIR to the Postgres of DATABASE_URL. Heraut must be stopped.
import { runProgram } from './run-program.mjs';

await runProgram('move-to-postgres.js');
