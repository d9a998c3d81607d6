/** An OpenAPI 3.0 schema; the document is data, and test/e2e/nrc-openapi.e2e-spec.ts holds it against real answers. */
export type Schema = { [key: string]: unknown };

const text = (description: string, more: Schema = {}): Schema => ({
  type: 'string',
  minLength: 1,
  description,
  ...more,
});

const ownUrl = text('Where this resource lives. Given by the server.', {
  format: 'uri',
  readOnly: true,
  maxLength: 1000,
});

const problemProperties: Schema = {
  type: text('Address of a page that explains this class of problem.', { format: 'uri' }),
  code: text('What went wrong; stable, for programs.'),
  title: text('The class of problem, for people.'),
  status: { type: 'integer', description: 'The HTTP status.', minimum: 400, maximum: 599 },
  detail: text('What went wrong this time, for people.'),
  instance: text('`urn:uuid:…` of this occurrence; the log of the server has the same.'),
};

const problemKeys = ['type', 'code', 'title', 'status', 'detail', 'instance'];

export const nrcSchemas: Record<string, Schema> = {
  Kanaal: {
    type: 'object',
    title: 'Kanaal',
    description: 'What notifications can be published about, and the names subscriptions can filter them on.',
    required: ['naam'],
    properties: {
      url: ownUrl,
      naam: text('Unique; cannot be changed.', { maxLength: 50 }),
      documentatieLink: {
        type: 'string',
        description: 'Page that describes the events and their characteristics. May be empty.',
        maxLength: 200,
        default: '',
      },
      filters: {
        type: 'array',
        description: 'Names of the characteristics a subscription can filter on. None: any name goes.',
        items: text('A name, such as `object_type`. camelCase and snake_case are the same name.', { maxLength: 100 }),
        default: [],
      },
    },
  },
  FilterGroup: {
    type: 'object',
    title: 'Kanaal of an abonnement',
    required: ['naam'],
    properties: {
      filters: {
        type: 'object',
        description:
          'Characteristic → the value it must have, or `*` for any. A name that a notification does not carry does not keep it away.',
        additionalProperties: text('A value, compared with its case.', { maxLength: 1000 }),
        default: {},
      },
      naam: text('The naam of an existing kanaal.'),
    },
  },
  Abonnement: {
    type: 'object',
    title: 'Abonnement',
    description: 'Who wants to be told what, and where.',
    required: ['callbackUrl', 'auth'],
    properties: {
      url: ownUrl,
      callbackUrl: text(
        'The webhook. It must answer 401 or 403 to a call without authorization, and 200 to 209 to one with `auth`.',
        { format: 'uri', maxLength: 2048 },
      ),
      auth: text('The literal value of the Authorization header to send. Never given back.', {
        writeOnly: true,
        maxLength: 16_384,
      }),
      kanalen: {
        type: 'array',
        description: 'Entries are alternatives; the same kanaal may occur several times.',
        items: { $ref: '#/components/schemas/FilterGroup' },
        default: [],
      },
      deliveryGuarantee: {
        type: 'string',
        enum: ['at-least-once', 'at-most-once', null],
        nullable: true,
        description:
          'Beyond the standard, and only shown where it was set. `at-most-once`: a call that may have arrived is never repeated. null: what the server gives the owner of the abonnement.',
      },
    },
  },
  Message: {
    type: 'object',
    title: 'Notificatie',
    description: 'What happened. Receivers get what the answer shows.',
    required: ['kanaal', 'hoofdObject', 'resource', 'resourceUrl', 'actie', 'aanmaakdatum'],
    properties: {
      kanaal: text('The naam of an existing kanaal.', { maxLength: 50 }),
      hoofdObject: text('The object it is about.', { format: 'uri' }),
      resource: text('What kind of resource changed.', { maxLength: 100 }),
      resourceUrl: text('The resource that changed.', { format: 'uri' }),
      actie: text('What was done to it, such as `create`, `update`, `destroy`.', { maxLength: 100 }),
      aanmaakdatum: {
        type: 'string',
        format: 'date-time',
        description: 'When it was done; not in the future. Sent on in UTC.',
      },
      kenmerken: {
        type: 'object',
        description: 'What subscriptions filter on. Names in snake_case are sent on in camelCase.',
        additionalProperties: { type: 'string', maxLength: 1000 },
        default: {},
      },
      source: text('Where it comes from. Sent on when given.', { maxLength: 100 }),
    },
  },
  Fout: {
    type: 'object',
    title: 'Fout',
    description: 'A problem as RFC 9457 writes it.',
    required: problemKeys,
    properties: problemProperties,
  },
  FieldValidationError: {
    type: 'object',
    title: 'Wrong field',
    required: ['name', 'code', 'reason'],
    properties: {
      name: text('Path of the field, with dots and indices from 0: `kanalen.0.naam`. `nonFieldErrors`: the whole.'),
      code: text('What is wrong with it; stable, for programs.'),
      reason: text('What is wrong with it, for people.'),
    },
  },
  ValidatieFout: {
    type: 'object',
    title: 'ValidatieFout',
    description: 'A problem with the input.',
    required: [...problemKeys, 'invalidParams'],
    properties: {
      ...problemProperties,
      invalidParams: { type: 'array', items: { $ref: '#/components/schemas/FieldValidationError' } },
    },
  },
};
