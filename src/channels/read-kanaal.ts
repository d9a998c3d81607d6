import { ValidationProblem } from '../infra/http/problem.js';
import { hasCredentials, type FieldReader } from '../nrc/fields.js';
import type { ChannelInput } from './channel-changes.js';

/** @throws {ValidationProblem} */
export function readKanaal(fields: FieldReader): ChannelInput {
  const { name = '', documentationLink = '', filters = [] } = readKanaalFields(fields, { isPartial: false });
  return { name, documentationLink, filters };
}

/**
 * The fields that were sent.
 * @throws {ValidationProblem}
 */
export function readKanaalFields(fields: FieldReader, { isPartial }: { isPartial: boolean }): Partial<ChannelInput> {
  const name = fields.text('naam', { maxLength: 50, isOptional: isPartial });
  const documentationLink = fields.url('documentatieLink', { maxLength: 200, mayBeBlank: true, isOptional: true });
  if (documentationLink && hasCredentials(documentationLink)) {
    fields.refuse('documentatieLink', 'invalid', 'Credentials do not belong in a URL.');
  }
  const filters = fields.textList('filters', { maxLength: 100, isOptional: true });
  if (fields.invalidParams.length > 0) throw new ValidationProblem(fields.invalidParams);
  return { name, documentationLink, filters };
}
