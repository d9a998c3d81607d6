import type { PipeTransform } from '@nestjs/common';
import { NotFoundProblem } from './problem.js';

/** The UUID in a path, lower-case. Anything else names no resource, so it is a 404, like an unknown UUID. */
export class ResourceId implements PipeTransform<string, string> {
  transform(value: string): string {
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)) throw new NotFoundProblem();
    return value.toLowerCase();
  }
}
