// Specs of folders that may not import src/supervision.
export { noSiblings } from '../../src/supervision/siblings.js';
