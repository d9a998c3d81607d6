/**
 * The options a command was given. Says how the command is used, and ends it, when it is asked to or given anything
 * else.
 * @template {{ help?: boolean | undefined }} T
 * @param {string} usage
 * @param {() => { values: T }} parse by `parseArgs`
 */
export function readCommandLine(usage, parse) {
  try {
    const { values } = parse();
    if (!values.help) return values;
  } catch (error) {
    refuse(usage, /** @type {Error} */ (error).message);
  }
  console.log(usage);
  process.exit(0);
}

/**
 * Only before anything was started.
 * @param {string} usage
 * @param {string} why
 * @returns {never}
 */
export function refuse(usage, why) {
  console.error(`${why}\n\n${usage}`);
  process.exit(2);
}

/**
 * @param {string} usage
 * @param {string} name
 * @param {string} text
 * @param {number} min
 * @param {number} max
 */
export function wholeNumber(usage, name, text, min, max) {
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  return refuse(usage, `--${name} is a whole number from ${min} to ${max}.`);
}

/**
 * @template T
 * @param {string} usage
 * @param {string} name
 * @param {string} text
 * @param {readonly T[]} choices
 * @param {(choice: T) => string} nameOf
 * @returns {T}
 */
export function oneOf(usage, name, text, choices, nameOf) {
  const choice = choices.find((each) => nameOf(each) === text);
  return choice ?? refuse(usage, `--${name} is one of ${choices.map(nameOf).join(', ')}.`);
}
