// `npm run rotate-keys`: encrypts every stored secret with the first of the SECRET_KEYS. It may run while brokers run, and be repeated.
import { runProgram } from './run-program.mjs';

await runProgram('rotate-keys.js');
