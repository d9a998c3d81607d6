/** The file of `CONFIG_FILE` cannot be applied; the message has a line for all that is wrong. Nothing was changed. */
export class ConfigurationRefused extends Error {}
