import { SetMetadata, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { NotAcceptableProblem } from './problem.js';

const answersOther = Symbol('answers another media type');

/** Of a handler whose answer, unless it is an error, is of this media type: an Accept that names it is right. */
export const Answers = (mediaType: string) => SetMetadata(answersOther, mediaType);

/** Refuses a request whose Accept excludes JSON, before anything is done for it. */
export class AcceptJsonGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const other = Reflect.getMetadata(answersOther, context.getHandler()) as string | undefined;
    if (other === undefined || !request.headers.accept?.includes(other)) requireJsonAccepted(request);
    return true;
  }
}

/** @throws {NotAcceptableProblem} */
export function requireJsonAccepted({ headers }: FastifyRequest): void {
  if (!acceptsJson(headers.accept)) throw new NotAcceptableProblem();
}

/**
 * RFC 9110 §12.5.1: the most specific range that fits decides, and `q=0` means no. `application/problem+json` without
 * JSON is what generated clients send to an operation whose document has a body for errors only, such as a DELETE.
 */
export function acceptsJson(accept: string | undefined): boolean {
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return true;
  const weightOf = new Map<string, number>();
  for (const range of accept.toLowerCase().split(',')) {
    const [mediaType = '', ...parameters] = range.split(';').map((part) => part.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    weightOf.set(mediaType, weight === undefined ? 1 : Number(weight.slice(2)));
  }
  const named = weightOf.get('application/json');
  if (named !== undefined) return named > 0;
  const ofAny = weightOf.get('application/*') ?? weightOf.get('*/*') ?? 0;
  return ofAny > 0 || (weightOf.get('application/problem+json') ?? 0) > 0 || accept.trim() === '';
}
