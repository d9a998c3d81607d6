import { parentPort, workerData } from 'node:worker_threads';
import { readNow, type Reading } from './configuration-file/read-aside.js';

// A thread that reads one configuration and ends.
parentPort!.postMessage(readNow(workerData as Reading));
