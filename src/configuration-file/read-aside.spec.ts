import { describe, expect, it } from 'vitest';
import { turnsDuring } from '../../test/support/turns-during.js';
import { readConfigurationText } from './configuration-text.js';
import { readConfigurationAside } from './read-aside.js';
import { sourcesGiven } from './sources.js';
import { toYaml, toYamlInParts } from './yaml-text.js';

const channels = Array.from({ length: 2000 }, (_, nr) => ({ name: `channel-${nr}`, filters: ['kind', 'of "it"'] }));
const values = { env: { LABEL: 'a label' } };

describe('a large configuration', () => {
  it('is read while this process goes on with its work, and as a small one is', async () => {
    const applications = [{ clientId: 'one', label: { value_from: { env: 'LABEL' } } }];
    const text = `${toYaml({ channels, applications })}bad: 1\n`;
    const { turns, result } = await turnsDuring(readConfigurationAside(text, { values }));
    expect(turns).toBeGreaterThan(1);
    const { remarksOn, ...parts } = readConfigurationText(text, sourcesGiven(values));
    const { remarksOn: remarksAside, ...partsAside } = result;
    expect(partsAside).toEqual(parts);
    const found = [
      { name: 'bad', code: 'unknown', reason: 'There is no such field here.' },
      { name: 'channels.1999.filters.1', code: 'invalid', reason: 'Something.' },
    ];
    expect(await remarksAside(found)).toEqual(remarksOn(found));
    expect(remarksOn(found)).toHaveLength(2);
  });

  it('is read beside others, each for itself', async () => {
    const texts = ['one', 'two', 'three'].map((name) =>
      toYaml({ channels: channels.map((each) => ({ ...each, name })) }),
    );
    const read = await Promise.all(texts.map((text) => readConfigurationAside(text, { values })));
    expect(read.map(({ configuration }) => configuration)).toEqual(
      texts.map((text) => readConfigurationText(text, sourcesGiven(values)).configuration),
    );
  });

  it('that is no YAML is told with its line and column', async () => {
    const text = `${toYaml({ channels })}broken: [1\nnext: 2\n`;
    const { configuration, problems } = await readConfigurationAside(text, { values });
    expect(configuration).toBeUndefined();
    expect(problems).toEqual(readConfigurationText(text, sourcesGiven(values)).problems);
    expect(problems).not.toEqual([]);
  });

  it('is written in parts, between which this process goes on with its work, and as a whole would be', async () => {
    const whole = { applications: [], channels, retryPolicy: { maxRetries: 3 }, subscriptions: channels.slice(0, 51) };
    const { turns, result } = await turnsDuring(toYamlInParts(whole));
    expect(turns).toBeGreaterThan(1);
    expect(result).toBe(toYaml(whole));
    expect(await toYamlInParts({})).toBe(toYaml({}));
  });
});
