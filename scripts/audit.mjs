// The question of CI to the registry: whether an advisory of level high or above is known for a package that an
// installed Heraut consists of. Prints one line. Where the registry does not answer that question, as mirrors do not,
// the line says so and nothing fails: a change is not worse because somebody else is out of reach.
import { spawnSync } from 'node:child_process';
import { projectDirectory } from './ready-to-run.mjs';

const level = 'high';
const { status, stdout, stderr, error } = spawnSync(
  'npm',
  // Without a retry, and with an end: CI must not wait for a registry that is away.
  ['audit', '--json', '--omit=dev', `--audit-level=${level}`, '--fetch-retries=0', '--fetch-timeout=20000'],
  { cwd: projectDirectory, encoding: 'utf8', timeout: 60_000, maxBuffer: 64 * 1024 * 1024 },
);
const report = read(stdout);
if (report?.vulnerabilities === undefined) {
  const reason = report?.message ?? error?.message ?? stderr.trim().split('\n').at(-1);
  console.log(`not answered by the registry (${reason})`);
} else {
  const found = Object.values(report.vulnerabilities).map(({ name, severity }) => `${name} (${severity})`);
  console.log(found.length === 0 ? 'no advisory' : `advisories: ${found.join(', ')}`);
  process.exitCode = status === 0 ? 0 : 1;
}

/**
 * @param {string} text
 * @returns {{ message?: string, vulnerabilities?: Record<string, { name: string, severity: string }> } | undefined}
 */
function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
