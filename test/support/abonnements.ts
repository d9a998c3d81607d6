import type { ApiAnswer } from './api.js';
import type { Receiver } from './receiver.js';

export const auth = 'Bearer letmein';
/** Of the message by which a callback is proven: that of Open Notificaties, to the letter. */
export const proofBody = {
  kanaal: 'test',
  hoofdObject: 'http://some.hoofdobject.nl/',
  resource: 'some_resource',
  resourceUrl: 'http://some.resource.nl/',
  actie: 'create',
  aanmaakdatum: '2019-01-01T12:00:00Z',
  kenmerken: {},
};

export const wrong = ({ status, json }: ApiAnswer) => ({
  status,
  fields: json.invalidParams?.map(({ name, code }) => `${name} ${code}`),
});

/** With what authorization the callback was called, and with what body. */
export const proofsOf = ({ requests }: Receiver) =>
  requests.map(({ headers, text }) => [headers.authorization, JSON.parse(text)]);
