import type { Api } from './api.js';
import { CommandLine, type Typed } from './fake-terminal.js';

export interface Ran {
  status: number;
  output: string;
  errors: string;
}

/** `heraut plan|apply|export`, in this process, against that server. */
export async function runConfigurationCommand(api: Api, words: readonly string[], typed?: Typed): Promise<Ran> {
  const heraut = new CommandLine({ HERAUT_URL: api.origin, HERAUT_TOKEN: api.superuserToken });
  const { exit, out, notes } = await heraut.run(words.join(' '), typed);
  return { status: exit, output: out, errors: notes };
}
