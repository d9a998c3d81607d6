import type { PipeTransform } from '@nestjs/common';
import { ValidationProblem, wholeInput } from './problem.js';

/**
 * The query of a call, with every parameter outside `names` refused: a filter that is misspelt and ignored would answer
 * with more than was asked for. If a parameter is given twice, the last one counts.
 */
export class KnownQuery implements PipeTransform<Record<string, string | string[]>, Record<string, string>> {
  private readonly names: ReadonlySet<string>;

  constructor(...names: string[]) {
    this.names = new Set(names);
  }

  transform(query: Record<string, string | string[]>): Record<string, string> {
    const unknown = Object.keys(query).filter((name) => !this.names.has(name));
    if (unknown.length > 0) {
      const reason = `Unknown query parameters: ${unknown.join(', ')}.`;
      throw new ValidationProblem([{ name: wholeInput, code: 'unknown-parameters', reason }]);
    }
    return Object.fromEntries(
      Object.entries(query).map(([name, value]) => [name, Array.isArray(value) ? value.at(-1)! : value]),
    );
  }
}
