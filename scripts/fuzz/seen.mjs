/** @typedef {import('../random.mjs').Random} Random */

/** Of each kind; then one of them makes room. */
const mostKept = 40;

/** Texts and ids that the server answered with: requests that use them get further than others. */
export class Seen {
  /** @type {Map<string, string[]>} */
  #byName = new Map();
  /** @type {Map<string, string[]>} */
  #byCollection = new Map();

  /**
   * @param {string} path of the operation that answered
   * @param {unknown} body
   * @param {Random} random
   */
  learn(path, body, random) {
    if (Array.isArray(body)) {
      for (const each of body.slice(0, 20)) this.learn(path, each, random);
      return;
    }
    if (typeof body !== 'object' || body === null) return;
    for (const [name, value] of Object.entries(body)) {
      if (typeof value !== 'string') {
        this.learn(path, value, random);
        continue;
      }
      if (value.length > 3000) continue;
      keep(this.#byName, name, value, random);
      const id = name === 'id' ? value : name === 'url' ? value.slice(value.lastIndexOf('/') + 1) : undefined;
      if (id !== undefined) keep(this.#byCollection, collectionOf(path), id, random);
    }
  }

  /**
   * @param {string} name of a field
   * @param {Random} random
   */
  underName(name, random) {
    return oneOf(this.#byName.get(name), random);
  }

  /**
   * @param {string} path of an operation
   * @param {string} name of a parameter in it
   * @param {Random} random
   */
  inPath(path, name, random) {
    return oneOf(this.#byName.get(name) ?? this.#byCollection.get(collectionOf(path)), random);
  }
}

/** @param {string} path `/admin/v1/channels/{channelId}` and what is below it → `channels` */
const collectionOf = (path) => /([^/]+)(?:\/\{.*)?$/.exec(path)?.[1] ?? path;

/**
 * @param {Map<string, string[]>} map
 * @param {string} key
 * @param {string} value
 * @param {Random} random
 */
function keep(map, key, value, random) {
  const kept = map.get(key) ?? [];
  map.set(key, kept);
  if (kept.includes(value)) return;
  if (kept.length < mostKept) kept.push(value);
  else kept[Math.floor(random.next() * mostKept)] = value;
}

/**
 * @param {string[] | undefined} values
 * @param {Random} random
 */
const oneOf = (values, random) => (values && values.length > 0 ? random.oneOf(values) : undefined);
