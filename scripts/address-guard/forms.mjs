// Every way to write an address that callbacks may not use (with CALLBACK_NETWORKS=public, unless it says `any`), or
// not through the proxy.

/** Where calls may go in these examinations: a receiver, and the egress proxy. */
export const receiverAddress = '127.0.0.2';
export const proxyAddress = '127.0.0.3';

/**
 * @typedef {object} Form
 * @property {string} kind
 * @property {string} host of a URL
 * @property {'any'} [networks]
 * @property {string[][]} [answers] of the name server, one after the other, over and over
 * @property {string} [shown] text of the table instead of the host
 */

/** @type {(kind: string, hosts: string[], networks?: 'any') => Form[]} */
const written = (kind, hosts, networks) => hosts.map((host) => ({ kind, host, networks }));

/** @type {(shown: string, ...answers: string[][]) => Form} */
const named = (shown, ...answers) => ({
  kind: answers.length > 1 ? 'name whose answers change' : 'name',
  host: `${shown.replaceAll(/\W+/g, '-')}.test`,
  answers,
  shown,
});

/** It must be called, but never through the proxy: there it would be the proxy's own machine. */
export const allowed = 'allowed, of this machine';

/** @type {Form[]} */
export const forms = [
  ...written('IPv4, special ranges', [
    '0.0.0.0',
    '10.0.0.1',
    '100.64.0.1',
    '127.0.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '192.0.0.1',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.0.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
  ]),
  ...written('IPv4, other notations', [
    '2130706433',
    '0x7f000001',
    '017700000001',
    '0x7f.1',
    '0177.0.0.1',
    '127.1',
    '127.0.0.1.',
    '１２７.0.0.1',
    '①②⑦.⓪.⓪.①',
    '%31%32%37.0.0.1',
    '127。0。0。1',
  ]),
  ...written('IPv6, special ranges', [
    '[::]',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[64:ff9b:1::1]',
    '[100::1]',
    '[2001:2::1]',
    '[2001:20::1]',
    '[2001:db8::1]',
    '[3fff::1]',
    '[4000::1]',
    '[5f00::1]',
    '[fc00::1]',
    '[fd00::1]',
    '[fe80::1]',
    '[fec0::1]',
    '[ff02::1]',
  ]),
  ...written('IPv4 inside IPv6', [
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[::ffff:0:127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b::a00:1]',
    '[64:ff9b:1:7f00:0:100::]',
    '[2002:7f00:1::]',
    '[2002:a9fe:a9fe::1]',
    '[2001:0:7f00:1::]',
    '[2001:0:808:808:0:1:80ff:fffe]',
  ]),
  ...written(
    'link-local and metadata, CALLBACK_NETWORKS=any',
    [
      '169.254.169.254',
      '169.254.170.2',
      '0xa9fea9fe',
      '100.100.100.200',
      '168.63.129.16',
      '[fe80::1]',
      '[fd00:ec2::254]',
      '[::ffff:169.254.169.254]',
      '[::ffff:0:169.254.169.254]',
      '[64:ff9b::a9fe:a9fe]',
      '[64:ff9b:1:a9fe:a9:fe00::]',
      '[2002:a9fe:a9fe::1]',
      '[2001:0:808:808:0:1:5601:5601]',
    ],
    'any',
  ),
  ...written(allowed, [`[::ffff:${receiverAddress}]`]),
  named('127.0.0.1', ['127.0.0.1']),
  named('10.0.0.1 and ::1', ['10.0.0.1', '::1']),
  named('::ffff:127.0.0.1', ['::ffff:127.0.0.1']),
  named('64:ff9b::7f00:1', ['64:ff9b::7f00:1']),
  named(`127.0.0.1 and ${receiverAddress}`, ['127.0.0.1', receiverAddress]),
  named(`${receiverAddress} and 10.0.0.1 and fd00::1`, [receiverAddress, '10.0.0.1', 'fd00::1']),
  named(`${receiverAddress}, then 127.0.0.1`, [receiverAddress], ['127.0.0.1']),
  named(`127.0.0.1, then ${receiverAddress}`, ['127.0.0.1'], [receiverAddress]),
  named(`${receiverAddress}, then 169.254.169.254`, [receiverAddress], ['169.254.169.254']),
];
