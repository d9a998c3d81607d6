/** The body of a publication on this channel, with these fields in place of its own. */
export function notificatie(kanaal: string, fields: object = {}) {
  const url = 'https://cases.example.org/api/cases/1';
  return {
    kanaal,
    hoofdObject: url,
    resource: 'case',
    resourceUrl: url,
    actie: 'create',
    aanmaakdatum: '2025-01-01T12:00:00.123456Z',
    kenmerken: {},
    ...fields,
  };
}
