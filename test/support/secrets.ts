import { SecretCipher } from '../../src/secrets/secret-cipher.service.js';

/** Without keys: what is stored is readable, so that a test can write it with SQL. */
export const plainCipher = new SecretCipher(new Map());
