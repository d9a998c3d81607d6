/*
 * The notification of the benchmark: 1 KiB, written as Heraut itself writes it, so that receivers get the very bytes
 * that were published. It ends with `"source":"<run>-<number>-<microseconds>"}` in fixed widths: which measurement it
 * belongs to, which one it is, and when it was sent or should have been.
 */
const notificationBytes = 1024;
const widths = { run: 4, number: 8, micros: 15 };
const tailLength = widths.run + 1 + widths.number + 1 + widths.micros;
/** The bytes after the tail: `"}`. */
const closing = 2;

export const channels = { single: 'bench', many: 'bench-fan-out', others: 'bench-others' };
export const filters = ['bronorganisatie', 'zaaktype', 'vertrouwelijkheidaanduiding', 'toelichting'];

/**
 * @typedef {object} Tail
 * @property {number} run
 * @property {number} number
 * @property {number} sentMs on the shared clock
 */

/** Of the end of `hoofdObject`, and of `bronorganisatie`. */
const turnDigits = 9;
const object = '6fe2d9a3-0f4c-4e59-a5a8-2f3000000000';
const beforeOrganization = '"bronorganisatie":"';

/** The `bronorganisatie` of a notification. @param {number} turn from 0 */
export const organizationOf = (turn) => String(turn).padStart(turnDigits, '0');

/**
 * Gives a function that writes the notifications of one run.
 * @param {string} channel
 * @param {number} run
 * @param {number} turns different objects and organizations that they are of, in turn: number `n` of number `n % turns`
 * @returns {(number: number, sentMs: number) => Buffer}
 */
export function notificationWriter(channel, run, turns = 1) {
  const textWith = (/** @type {string} */ padding) =>
    JSON.stringify({
      kanaal: channel,
      hoofdObject: `https://zaken.example.com/zaken/api/v1/zaken/${object}`,
      resource: 'status',
      resourceUrl: 'https://zaken.example.com/zaken/api/v1/statussen/1e1b2cbd-3d5c-4c6b-9d0a-0dbe3c0f1d63',
      actie: 'create',
      aanmaakdatum: '2026-01-01T12:00:00.123456Z',
      kenmerken: {
        bronorganisatie: organizationOf(0),
        zaaktype: 'https://catalogi.example.com/api/v1/zaaktypen/d06f86e0-1c3a-49cf-b5cd-01c079cf8147',
        vertrouwelijkheidaanduiding: 'openbaar',
        toelichting: padding,
      },
      source: '0'.repeat(tailLength),
    });
  const template = Buffer.from(textWith('x'.repeat(notificationBytes - textWith('').length)));
  const at = template.length - closing - tailLength;
  const objectAt = template.indexOf(object) + object.length - turnDigits;
  const organizationAt = template.indexOf(beforeOrganization) + beforeOrganization.length;
  writeDigits(template, at, widths.run, run);
  template.write('-', at + widths.run);
  template.write('-', at + widths.run + 1 + widths.number);
  return (number, sentMs) => {
    const notification = Buffer.from(template);
    if (turns > 1) {
      writeDigits(notification, objectAt, turnDigits, number % turns);
      writeDigits(notification, organizationAt, turnDigits, number % turns);
    }
    writeDigits(notification, at + widths.run + 1, widths.number, number);
    writeDigits(notification, at + widths.run + widths.number + 2, widths.micros, Math.round(sentMs * 1000));
    return notification;
  };
}

/**
 * @param {Buffer} bytes
 * @param {number} end where the notification ends
 * @returns {Tail | undefined} undefined if it is not one of ours
 */
export function readTail(bytes, end) {
  const at = end - closing - tailLength;
  const run = readDigits(bytes, at, widths.run);
  const number = readDigits(bytes, at + widths.run + 1, widths.number);
  const micros = readDigits(bytes, at + widths.run + widths.number + 2, widths.micros);
  return run < 0 || number < 0 || micros < 0 ? undefined : { run, number, sentMs: micros / 1000 };
}

/**
 * @param {Buffer} bytes
 * @param {number} at
 * @param {number} width
 * @param {number} value
 */
function writeDigits(bytes, at, width, value) {
  let rest = value;
  for (let index = at + width - 1; index >= at; index--) {
    bytes[index] = 48 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}

/**
 * @param {Buffer} bytes
 * @param {number} at
 * @param {number} width
 * @returns {number} -1 if there is anything but digits
 */
function readDigits(bytes, at, width) {
  let value = 0;
  for (let index = at; index < at + width; index++) {
    const digit = (bytes[index] ?? 0) - 48;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}
