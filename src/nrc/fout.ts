import * as z from 'zod';

const text = (description: string) => z.string().min(1).describe(description);

const problem = z.object({
  type: z.url().min(1).describe('Address of a page that explains this class of problem.'),
  code: text('The kind of error; stable, for programs.'),
  title: text('The class of problem, for people.'),
  status: z.int().min(400).max(599).describe('The HTTP status.'),
  detail: text('The error this time, for people.'),
  instance: text(
    '`urn:uuid:…` of this occurrence; the log of the server has the same: of a 5xx at level error, of a 4xx at level debug but for a sample.',
  ),
});

export const fout = z.object(problem.shape).meta({ id: 'Fout', description: 'A problem as RFC 9457 writes it.' });

const fieldValidationError = z
  .object({
    name: text('Path of the field, with dots and indices from 0: `kanalen.0.naam`. `nonFieldErrors`: the whole.'),
    code: text('Its error; stable, for programs.'),
    reason: text('Its error, for people.'),
  })
  .meta({ id: 'FieldValidationError', description: 'A wrong field.' });

export const validatieFout = z
  .object({ ...problem.shape, invalidParams: z.array(fieldValidationError) })
  .meta({ id: 'ValidatieFout', description: 'A problem with the input.' });
