// A name server whose answers may differ each time it is asked.
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns';
import { once } from 'node:events';
import { isIPv4, isIPv6 } from 'node:net';

const typeA = 1;
const noSuchName = 3;

/**
 * @typedef {object} NameServer
 * @property {Map<string, () => string[]>} names of each name the addresses of both families; asked for once for each question
 * @property {string[]} asked the names, once for each look-up
 * @property {import('node:net').LookupFunction} lookUp asks this server and nothing else: neither a cache nor /etc/hosts
 * @property {() => Promise<void>} stop
 */

/** @returns {Promise<NameServer>} */
export async function startNameServer() {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const resolver = new Resolver({ timeout: 1000, tries: 1 });
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  /** @type {Map<string, () => string[]>} */
  const names = new Map();
  /** @type {string[]} */
  const asked = [];
  socket.on('message', (question, from) => socket.send(answerTo(question, names), from.port, from.address));

  return {
    names,
    asked,
    lookUp: (name, options, callback) => {
      asked.push(name);
      resolver.resolve4(name, (noFour, four) => {
        resolver.resolve6(name, (noSix, six) => {
          const found = [...(noFour ? [] : four), ...(noSix ? [] : six)];
          const addresses = found.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
          const [first] = addresses;
          if (!first) callback(Object.assign(new Error(`there is no ${name}`), { code: 'ENOTFOUND' }), '');
          else if (options.all) callback(null, addresses);
          else callback(null, first.address, first.family);
        });
      });
    },
    stop: async () => {
      resolver.cancel();
      socket.close();
      await once(socket, 'close');
    },
  };
}

/**
 * RFC 1035 §4.
 * @param {Buffer} question
 * @param {Map<string, () => string[]>} names
 */
function answerTo(question, names) {
  const labels = [];
  let at = 12;
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    labels.push(question.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const end = at + 5; // the empty label, type and class
  const type = question.readUInt16BE(at + 1);
  const addressesOf = names.get(labels.join('.').toLowerCase());
  const addresses = (addressesOf?.() ?? []).filter(type === typeA ? isIPv4 : isIPv6);
  const header = Buffer.from(question.subarray(0, 12));
  header.writeUInt16BE(addressesOf ? 0x8180 : 0x8180 | noSuchName, 2);
  header.writeUInt16BE(addresses.length, 6);
  header.writeUInt32BE(0, 8);
  const records = addresses.map((address) => recordOf(type, bytesOf(address)));
  return Buffer.concat([header, question.subarray(12, end), ...records]);
}

/**
 * About the name in the question (a pointer to byte 12); it may not be remembered for a second.
 * @param {number} type
 * @param {Buffer} address
 */
function recordOf(type, address) {
  const start = Buffer.alloc(12);
  start.writeUInt16BE(0xc00c, 0);
  start.writeUInt16BE(type, 2);
  start.writeUInt16BE(1, 4); // of the internet
  start.writeUInt16BE(address.length, 10);
  return Buffer.concat([start, address]);
}

/** @param {string} address */
function bytesOf(address) {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const halves = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const [start = [], end = []] = halves.map((half) =>
    half === '' ? [] : half.split(':').map((group) => parseInt(group, 16)),
  );
  const zeros = Array.from({ length: 8 - start.length - end.length }, () => 0);
  return Buffer.from([...start, ...zeros, ...end].flatMap((group) => [group >> 8, group & 0xff]));
}
