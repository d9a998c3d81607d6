import { describe, expect, it } from 'vitest';
import { nameIn, roleIn } from './read-claims.js';

const roles = { viewer: ['kijker'], operator: ['beheer', 'piket'], administrator: ['hoofd'] };

describe('the role in the claims of a user', () => {
  it.each([
    [{ roles: ['kijker'] }, 'roles', 'viewer'],
    [{ roles: 'piket' }, 'roles', 'operator'],
    [{ roles: ['kijker', 'hoofd', 'piket'] }, 'roles', 'administrator'],
    [{ realm_access: { roles: ['beheer'] } }, 'realm_access.roles', 'operator'],
    [{ 'https://example.org/roles': ['hoofd'] }, 'https://example.org/roles', 'administrator'],
    [{ roles: ['viewer', 'KIJKER', 'kijker2'] }, 'roles', undefined],
    [{ roles: { kijker: true } }, 'roles', undefined],
    [{ roles: [1, null, ['hoofd']] }, 'roles', undefined],
    [{ roles: null }, 'roles.more', undefined],
    [{}, 'constructor.name', undefined],
    [{ roles: ['*'] }, 'roles', undefined],
  ])('%j with %s is %s', (claims, claim, role) => {
    expect(roleIn(claims, claim, roles)).toBe(role);
  });

  it('is for everybody where the settings say so', () => {
    expect(roleIn({}, 'roles', { ...roles, viewer: ['*'] })).toBe('viewer');
    expect(roleIn({ roles: ['hoofd'] }, 'roles', { ...roles, viewer: ['*'] })).toBe('administrator');
  });
});

describe('the name in the claims of a user', () => {
  it.each([
    [{ sub: '1', name: 'Jan', preferred_username: 'jan', email: 'j@x' }, 'Jan (jan)'],
    [{ sub: '1', name: 'Jan', email: 'j@x' }, 'Jan (j@x)'],
    [{ sub: '1', preferred_username: 'jan' }, 'jan'],
    [{ sub: '1', name: ' ', email: 5 }, '1'],
    [{ sub: '1', name: 'Ja\nn\u202e\t x', email: 'j@x' }, 'Ja n x (j@x)'],
    [{ sub: '1', name: 'a\0b', email: 'j@x' }, 'a b (j@x)'],
    [{ sub: '1', name: '\ud800' }, '1'],
  ])('%j is %s', (claims, name) => {
    expect(nameIn(claims)).toBe(name);
  });
});
