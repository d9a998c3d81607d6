/**
 * Receivers recognise a call that is only tried out by exactly this: channel `test`, and `kenmerken` present. Some
 * answer 401 to every other body until they have stored the subscription that is being made.
 */
export const proofBody = JSON.stringify({
  kanaal: 'test',
  hoofdObject: 'http://some.hoofdobject.nl/',
  resource: 'some_resource',
  resourceUrl: 'http://some.resource.nl/',
  actie: 'create',
  aanmaakdatum: '2019-01-01T12:00:00Z',
  kenmerken: {},
});
