// Those who verify what Heraut signs, none of them our own code.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { signaturesOf } from './call.mjs';
import { isInstalled, VerifyingProgram } from './verifying-program.mjs';

/**
 * @typedef {object} Verifier
 * @property {string} name
 * @property {import('./call.mjs').Scheme} scheme
 * @property {number} oneIn it is asked about one call in so many
 * @property {(key: string, call: import('./call.mjs').Call) => boolean | Promise<boolean>} isGenuine
 */

/** A program starts for each call: it looks at some. */
const oneInOfOpenSsl = 100;
/** The bytes before the 32 of a public key in DER (RFC 8410 §4). */
const publicKeyPrefix = Buffer.from('302a300506032b6570032100', 'hex');
const verifyFile = fileURLToPath(new URL('verify.py', import.meta.url));

/**
 * @param {string} directory for files of OpenSSL
 * @returns {{ verifiers: Verifier[], absent: string[], stop: () => Promise<void> }} `absent`: what is not installed
 *   here
 */
export function startVerifiers(directory) {
  /** @type {Verifier[]} */
  const verifiers = [{ name: 'standardwebhooks (npm)', scheme: 'v1', oneIn: 1, isGenuine: npmAccepts }];
  /** @type {string[]} */
  const absent = [];
  const packages = pythonPackages();
  const program = packages ? new VerifyingProgram('python3', [verifyFile]) : undefined;
  if (program && packages) {
    const hasLibrary = packages.includes('standardwebhooks');
    const isGenuine = program.isGenuine.bind(program);
    verifiers.push({
      name: hasLibrary ? 'standardwebhooks (Python)' : 'hmac (Python)',
      scheme: 'v1',
      oneIn: 1,
      isGenuine,
    });
    if (!hasLibrary) absent.push('standardwebhooks of Python');
    if (packages.includes('cryptography'))
      verifiers.push({ name: 'cryptography (Python)', scheme: 'v1a', oneIn: 1, isGenuine });
    else absent.push('cryptography of Python');
  } else absent.push('Python');
  if (isInstalled('openssl', ['version'])) {
    const isGenuine = openSslAccepts(directory);
    verifiers.push({ name: 'OpenSSL', scheme: 'v1a', oneIn: oneInOfOpenSsl, isGenuine });
  } else absent.push('OpenSSL');
  return { verifiers, absent, stop: async () => program?.stop() };
}

/** @returns {string[] | undefined} undefined: there is no Python */
function pythonPackages() {
  const { status, stdout } = spawnSync('python3', [verifyFile, 'packages'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim().split(' ') : undefined;
}

/** @type {Verifier['isGenuine']} */
function npmAccepts(key, { id, timestamp, signature, body }) {
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  try {
    new Webhook(key).verify(body, /** @type {Record<string, string>} */ (headers), { jsonParse: false });
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {string} directory
 * @returns {Verifier['isGenuine']}
 */
function openSslAccepts(directory) {
  const key = join(directory, 'key.der');
  const signed = join(directory, 'signed');
  const signature = join(directory, 'signature');
  return (publicKey, call) => {
    if (call.id === undefined || call.timestamp === undefined) return false;
    writeFileSync(key, Buffer.concat([publicKeyPrefix, Buffer.from(publicKey.replace('whpk_', ''), 'base64')]));
    writeFileSync(signed, Buffer.concat([Buffer.from(`${call.id}.${call.timestamp}.`), call.body]));
    return signaturesOf(call, 'v1a').some((each) => {
      writeFileSync(signature, Buffer.from(each.slice('v1a,'.length), 'base64'));
      const words = [
        '-verify',
        '-rawin',
        '-pubin',
        '-keyform',
        'DER',
        '-inkey',
        key,
        '-in',
        signed,
        '-sigfile',
        signature,
      ];
      return spawnSync('openssl', ['pkeyutl', ...words], { stdio: 'ignore' }).status === 0;
    });
  };
}
