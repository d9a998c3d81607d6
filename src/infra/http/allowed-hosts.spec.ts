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
});
