/*
 * Arrays in Postgres' binary format (array_recv in src/backend/utils/adt/arrayfuncs.c): the number of dimensions,
 * whether there are nulls, the type of the elements; the length and the first subscript of the one dimension; then each
 * element behind its length, -1 for null. The driver sends a Buffer in binary. As text each element would be quoted
 * here and unquoted there, which for kilobytes of JSON costs both sides more than all else that a statement's values
 * do.
 */
const headerBytes = 20;
/** Before each element. */
const lengthBytes = 4;

/** A value that its type cannot hold, with the code that Postgres would refuse it with. */
export class UnfitValue extends Error {
  constructor(
    readonly code: '22P02' | '22003',
    reason: string,
  ) {
    super(reason);
  }
}

interface ElementType {
  /** In pg_type. */
  oid: number;
  /** Undefined: of any size. */
  size?: number;
  /** Writes the value and returns its size. The buffer is large enough for `sizeOf` of every value. */
  write: (buffer: Buffer, value: unknown, offset: number) => number;
}

const types = new Map<string, ElementType>([
  ['text', { oid: 25, write: (buffer, value, offset) => buffer.write(value as string, offset) }],
  ['uuid', { oid: 2950, size: 16, write: (buffer, value, offset) => writeUuid(buffer, value as string, offset) }],
  ['int', { oid: 23, size: 4, write: (buffer, value, offset) => writeInt(buffer, value as number, offset) }],
  [
    'float8',
    { oid: 701, size: 8, write: (buffer, value, offset) => buffer.writeDoubleBE(value as number, offset) - offset },
  ],
]);

/**
 * The values as an array of that type, null among them.
 * @returns the value for the driver: the bytes, or the values themselves for a type that is only sent as text
 * @throws {UnfitValue} for a number that does not fit an `int`, or a text that is no UUID
 */
export function arrayOf(typeName: string, values: unknown[]): Buffer | unknown[] {
  const type = types.get(typeName);
  if (!type || values.length === 0) return values;
  const buffer = Buffer.allocUnsafe(headerBytes + values.length * lengthBytes + sizeOfAll(type, values));
  buffer.writeInt32BE(1, 0);
  buffer.writeInt32BE(0, 4); // Postgres looks at the elements themselves
  buffer.writeInt32BE(type.oid, 8);
  buffer.writeInt32BE(values.length, 12);
  buffer.writeInt32BE(1, 16);
  let offset = headerBytes;
  for (const value of values) {
    if (value === null) offset = buffer.writeInt32BE(-1, offset);
    else {
      const size = type.write(buffer, value, offset + lengthBytes);
      buffer.writeInt32BE(size, offset);
      offset += lengthBytes + size;
    }
  }
  return buffer;
}

function sizeOfAll({ size }: ElementType, values: readonly unknown[]): number {
  let total = 0;
  for (const value of values) if (value !== null) total += size ?? Buffer.byteLength(value as string);
  return total;
}

function writeInt(buffer: Buffer, value: number, offset: number): number {
  if ((value | 0) !== value) throw new UnfitValue('22003', `not a whole number of 32 bits: ${value}`);
  buffer.writeInt32BE(value, offset);
  return 4;
}

/** The value of a hexadecimal digit by its character code; 255: it is none. */
const digits = new Uint8Array(128).fill(255);
for (let digit = 0; digit < 16; digit++) {
  digits[digit.toString(16).charCodeAt(0)] = digit;
  digits[digit.toString(16).toUpperCase().charCodeAt(0)] = digit;
}

const hyphen = '-'.charCodeAt(0);

function writeUuid(buffer: Buffer, text: string, offset: number): number {
  if (text.length !== 36) throw new UnfitValue('22P02', `not a UUID: ${text.slice(0, 50)}`);
  let at = offset;
  for (let index = 0; index < 36; index += 2) {
    if (index === 8 || index === 13 || index === 18 || index === 23) {
      if (text.charCodeAt(index) !== hyphen) throw new UnfitValue('22P02', `not a UUID: ${text.slice(0, 50)}`);
      index++;
    }
    const high = digits[text.charCodeAt(index)] ?? 255;
    const low = digits[text.charCodeAt(index + 1)] ?? 255;
    if (high === 255 || low === 255) throw new UnfitValue('22P02', `not a UUID: ${text.slice(0, 50)}`);
    buffer[at++] = high * 16 + low;
  }
  return 16;
}
