import type { PipeTransform } from '@nestjs/common';
import { isUuid } from '../uuid-text.js';
import { NotFoundProblem } from './problem.js';

/** The UUID in a path, lower-case. Anything else names no resource, so it is a 404, like an unknown UUID. */
export class ResourceId implements PipeTransform<string, string> {
  transform(value: string): string {
    const id = value.toLowerCase();
    if (!isUuid(id)) throw new NotFoundProblem();
    return id;
  }
}
