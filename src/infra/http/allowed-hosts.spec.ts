import { describe, expect, it } from 'vitest';
import { AllowedHosts } from './allowed-hosts.js';

describe('allowed hosts', () => {
  const hosts = new AllowedHosts(['NRC.example.org', 'other.example.org:8443', '*.intern.example', '[::1]']);

  it.each([
    'nrc.example.org',
    'NRC.Example.Org',
    'nrc.example.org:8000',
    'other.example.org:8443',
    'a.intern.example',
    'a.b.intern.example:80',
    '[::1]',
    '[::1]:8000',
  ])('have %s', (host) => {
    expect(hosts.has(host)).toBe(true);
  });

  it.each([
    '',
    'example.org',
    'evil.nrc.example.org',
    'nrc.example.org.evil.example',
    'nrc.example.org@evil.example',
    'other.example.org',
    'other.example.org:8444',
    'intern.example',
    'evilintern.example',
    '[::2]',
    '::1',
  ])('do not have %j', (host) => {
    expect(hosts.has(host)).toBe(false);
  });

  it('are all where none is named', () => {
    expect(new AllowedHosts([]).has('anything')).toBe(true);
  });

  it('are all where one is `*`, as Django has it', () => {
    expect(new AllowedHosts(['nrc.example.org', '*']).has('anything')).toBe(true);
  });

  it('are a name and all names below it where it begins with a dot, as Django has it', () => {
    const below = new AllowedHosts(['.Example.org']);
    const asked = ['example.org', 'example.org:8000', 'a.b.example.org:80', 'evilexample.org', 'org'];
    expect(asked.map((host) => below.has(host))).toEqual([true, true, true, false, false]);
    expect(below.first).toBe('example.org');
  });
});
