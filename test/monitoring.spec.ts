import { beforeAll, describe, expect, it } from 'vitest';
import { parser } from '@prometheus-io/lezer-promql';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { register } from 'prom-client';
import { parse } from 'yaml';
import { ruleNames } from '../src/alerts/alert-rules.js';
import { runbookOf } from '../src/alerts/describe-news.js';
import { Measurements } from '../src/dispatching/measurements.service.js';
import { Upkeep } from '../src/dispatching/upkeep.service.js';

const project = fileURLToPath(new URL('..', import.meta.url));
const read = (name: string) => readFileSync(`${project}${name}`, 'utf8');

interface Rule {
  alert?: string;
  record?: string;
  expr: string;
  annotations?: { summary: string; runbook: string };
}

interface Panel {
  id: number;
  title: string;
  type: string;
  gridPos: { x: number; y: number; w: number; h: number };
  datasource?: { uid: string };
  targets?: { expr: string; datasource: { uid: string } }[];
}

interface Dashboard {
  uid: string;
  title: string;
  templating: { list: unknown[] };
  panels: Panel[];
}

const sources = readdirSync(`${project}src`, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'))
  .map((name) => `src/${name}`);
const { groups } = parse(read('docker/prometheus/rules.yml')) as { groups: { name: string; rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const alerts = rules.filter((rule) => rule.alert !== undefined);
const dashboards = readdirSync(`${project}docker/grafana/dashboards`).map((name) => ({
  name,
  ...(JSON.parse(read(`docker/grafana/dashboards/${name}`)) as Dashboard),
}));
const expressions = [
  ...rules.map(({ alert, record, expr }) => ({ where: alert ?? record!, expr })),
  ...dashboards.flatMap(({ name, panels }) =>
    panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ where: `${name}: ${title}`, expr }))),
  ),
];
const runbook = read('docs/operations.md');
const reference = read('docs/metrics.md');
/** Of the runbook, those of alerts. */
const entries = runbook.split(/^#+ /m).flatMap((entry) => (entry.startsWith('<a id="alert-') ? entry.slice(7) : []));

/** Labels of a target that rules and dashboards ask for, beside those of a metric. */
const ofTargets = ['installation'];
/** Metrics that Prometheus itself makes. */
const ofPrometheus = ['up'];
/** Of one metric, by its kind. */
const seriesOf = (name: string, type: unknown) =>
  type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name];

/** As the program has it: a second one would make its metrics anew. */
const compiled = (file: string) => new URL(`../dist/${file.replace(/\.ts$/, '.js')}`, import.meta.url).href;

describe('monitoring', () => {
  const exported = new Map<string, { type: unknown; labels: string[] }>();
  const ours = () => [...exported.keys()].filter((name) => name.startsWith('heraut_'));

  beforeAll(async () => {
    // Each metric stands in a file with such a name, so that all are found without starting Heraut.
    for (const file of sources.filter((name) => /\.(counters|metrics)\.ts$|\/http\/metrics\.ts$/.test(name)))
      await import(/* @vite-ignore */ compiled(file));
    const { supervisorMetrics } = await import('../src/supervision/supervisor.metrics.js');
    for (const registry of [register, supervisorMetrics().registry]) {
      for (const metric of registry.getMetricsAsArray()) {
        const { name, type, labelNames } = metric as unknown as { name: string; type: unknown; labelNames: string[] };
        exported.set(name, { type, labels: labelNames ?? [] });
      }
    }
  });

  it('finds every metric of the program', () => {
    const made = sources.flatMap((file) => [...read(file).matchAll(/'(heraut_\w+)'/g)].map(([, name]) => name!));
    expect(made.length).toBeGreaterThan(30);
    expect(ours().toSorted()).toEqual([...new Set(made)].toSorted());
  });

  it('every metric is in docs/metrics.md, and none that is not there', () => {
    const documented = [...reference.matchAll(/^\| `(heraut_\w+)` /gm)].map(([, name]) => name!);
    expect(documented.toSorted()).toEqual(ours().toSorted());
  });

  it('the labels of the documentation are those of the metric', () => {
    for (const [, name, cell] of reference.matchAll(/^\| `(heraut_\w+)` +\| ([^|]*)\|/gm)) {
      const labels = [...cell!.matchAll(/`(\w+)`/g)].map(([, label]) => label!);
      expect([name, labels.toSorted()]).toEqual([name, exported.get(name!)?.labels.toSorted()]);
    }
  });

  it('an expression that is no PromQL, or names what is not exported, is found', () => {
    expect(namesIn('sum(rate(heraut_x_total[5m])) by')).toBe('no PromQL');
    expect(namesIn('rate(heraut_x_total{a="b"}[5m]) > 0')).toEqual(['heraut_x_total']);
  });

  it('rules and dashboards ask for metrics that are exported', () => {
    const series = [...exported].flatMap(([name, { type }]) => seriesOf(name, type));
    const recorded = rules.flatMap(({ record }) => record ?? []);
    const known = new Set([...series, ...recorded, ...ofPrometheus]);
    const missing = expressions.flatMap(({ where, expr }) => {
      const names = namesIn(expr);
      return typeof names === 'string'
        ? [`${where}: ${names}`]
        : names.filter((name) => !known.has(name)).map((name) => `${where}: ${name}`);
    });
    expect(missing).toEqual([]);
  });

  it('rules and dashboards ask for labels that those metrics have', () => {
    const ofHeraut = /(heraut_\w+?)(?:_bucket|_sum|_count)?\{([^}]*)\}/g;
    const wrong = expressions.flatMap(({ where, expr }) =>
      [...expr.matchAll(ofHeraut)].flatMap(([, name, matchers]) => {
        const labels = exported.get(name!)?.labels ?? [];
        return [...matchers!.matchAll(/(\w+)\s*[!=]/g)]
          .filter(([, label]) => ![...labels, ...ofTargets].includes(label!))
          .map(([, label]) => `${where}: ${name} has no ${label}`);
      }),
    );
    expect(wrong).toEqual([]);
  });

  it('rules look at each installation by itself', () => {
    const together = rules.flatMap(({ alert, record, expr }) =>
      textsIn(expr, 'AggregateExpr')
        .filter((text) => !/^\w+ by \(installation\b/.test(text))
        .map((text) => `${alert ?? record}: ${text}`),
    );
    expect(together).toEqual([]);
  });

  it('dashboards show the installations that were chosen, at first all', () => {
    for (const { name, templating, panels } of dashboards) {
      expect([name, templating.list]).toMatchObject([
        name,
        [{ name: 'installation', includeAll: true, allValue: '.*', current: { value: ['$__all'] } }],
      ]);
      const selectors = panels.flatMap(({ targets = [] }) =>
        targets.flatMap(({ expr }) => textsIn(expr, 'VectorSelector')),
      );
      expect(selectors.filter((text) => !text.includes('{installation=~"$installation"'))).toEqual([]);
    }
  });

  it('dashboards add up the counts of installations, and those of one that several dispatchers measure they do not', () => {
    const mixed = dashboards.flatMap(({ panels }) =>
      panels
        .flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => textsIn(expr, 'AggregateExpr')))
        .filter((text) => /^max\b/.test(text) && !/_seconds\{|_estimated\{|_subscription_/.test(text))
        .filter((text) => !/^max by \(installation\b/.test(text)),
    );
    expect(mixed).toEqual([]);
  });

  it('the panel of ages shows the tasks that are done several times a minute, and no other one', () => {
    const none = undefined as never;
    const config = { settings: {} } as never;
    const upkeep = new Upkeep(none, config, none, none, none, none, none, none, none, none, none, none, none, none);
    const tasks = [...upkeep.tasks, ...new Measurements(none, none, none, none).tasks];
    const { expr } = dashboards.flatMap(({ panels }) => panels).find(({ title }) => title === 'Age of the rounds')!
      .targets![0]!;
    const excluded = new RegExp(`^(?:${/task!~"([^"]*)"/.exec(expr)![1]})$`);
    const seldom = tasks.filter(({ everyMs }) => everyMs >= 60_000).map(({ name }) => name);
    expect(seldom.length).toBeGreaterThan(15);
    expect(tasks.map(({ name }) => name).filter((name) => excluded.test(name))).toEqual(seldom);
  });

  it('every alert, of Heraut and of Prometheus, leads to its entry in the runbook, and each entry is of one', () => {
    const known = new Map(entries.map((entry) => [`docs/operations.md#${entry.split('"')[0]}`, entry]));
    expect(known.size).toBe(entries.length);
    expect(alerts.length).toBeGreaterThan(10);
    const told = [
      ...alerts.map(({ alert, annotations }) => ({ place: annotations!.runbook, named: `Prometheus: ${alert}` })),
      ...ruleNames.map((rule) => ({ place: runbookOf(rule), named: `Heraut: \`${rule}\`` })),
    ];
    for (const { place, named } of told)
      expect([place, known.get(place)]).toEqual([place, expect.stringContaining(named)]);
    expect([...known.keys()].toSorted()).toEqual([...new Set(told.map(({ place }) => place))].toSorted());
  });

  it('every entry of an alert says what it means, what to do, and when to stop worrying', () => {
    for (const entry of entries)
      expect(entry.match(/^- \*\*(?:Means|Do|Stop worrying when)\*\*/gm)).toEqual([
        '- **Means**',
        '- **Do**',
        '- **Stop worrying when**',
      ]);
  });

  it('`npm run check:rules` says where promtool comes from where it is not installed', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const { status, stderr } = spawnSync('/bin/sh', ['-c', scripts['check:rules']!], {
      env: { PATH: '/nowhere' },
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([1, expect.stringContaining('Debian: package prometheus')]);
  });

  it('dashboards are told apart, ask the data source that is provisioned, and no panel covers another', () => {
    const [source] = (
      parse(read('docker/grafana/provisioning/datasources/prometheus.yml')) as { datasources: { uid: string }[] }
    ).datasources;
    expect(new Set(dashboards.map(({ uid }) => uid)).size).toBe(dashboards.length);
    for (const { name, panels } of dashboards) {
      expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
      for (const { title, type, targets = [], datasource } of panels) {
        if (type === 'row') continue;
        expect([name, title, targets.length > 0]).toEqual([name, title, true]);
        for (const uid of [datasource?.uid, ...targets.map((target) => target.datasource.uid)])
          expect([name, title, uid]).toEqual([name, title, source!.uid]);
      }
      const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, nr) => `${x + (nr % w)}/${y + Math.floor(nr / w)}`),
      );
      expect([name, new Set(cells).size]).toEqual([name, cells.length]);
      expect(panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
    }
  });
});

/** The metrics in an expression. */
function namesIn(expr: string): string[] | 'no PromQL' {
  const names: string[] = [];
  let isBroken = false;
  parser.parse(expr).iterate({
    enter: (node) => {
      if (node.type.isError) isBroken = true;
      if (node.name === 'VectorSelector') {
        const identifier = node.node.getChild('Identifier');
        if (identifier) names.push(expr.slice(identifier.from, identifier.to));
      }
    },
  });
  return isBroken ? 'no PromQL' : names;
}

/** The parts of an expression that are such a node of its grammar. */
function textsIn(expr: string, node: string): string[] {
  const texts: string[] = [];
  parser.parse(expr).iterate({
    enter: ({ name, from, to }) => void (name === node && texts.push(expr.slice(from, to))),
  });
  return texts;
}
