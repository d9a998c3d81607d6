// Loaded before Heraut with `--import`: each process takes itself for the only one of a machine, whose name is its pid.
// So the ledger's table `process`, which has the name of the machine, says which process of this machine has which id.
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';

os.hostname = () => `pid-${process.pid}`;
syncBuiltinESMExports();
