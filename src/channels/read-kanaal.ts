import { ValidationProblem } from '../infra/http/problem.js';
import { hasCredentials, type FieldReader } from '../nrc/fields.js';
import type { ChannelInput } from './channel-changes.js';
import { longestChannelName, longestDocumentationLink, longestFilterName, mostFilters } from './channel-limits.js';

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
  const name = fields.text('naam', { maxLength: longestChannelName, isOptional: isPartial });
  const documentationLink = fields.url('documentatieLink', {
    maxLength: longestDocumentationLink,
    mayBeBlank: true,
    isOptional: true,
  });
  if (documentationLink && hasCredentials(documentationLink)) {
    fields.refuse('documentatieLink', 'invalid', 'Credentials do not belong in a URL.');
  }
  const filters = fields.textList('filters', { most: mostFilters, maxLength: longestFilterName, isOptional: true });
  if (fields.invalidParams.length > 0) throw new ValidationProblem(fields.invalidParams);
  return { name, documentationLink, filters };
}
