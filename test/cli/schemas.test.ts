import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { documentedTree } from '../../scripts/command-tree.ts'
import { jsonSchemas, SCHEMA_OF } from '../../scripts/json-schemas.ts'
import { allNodes } from '../../src/cli/command.ts'
import { openNetwork } from '../../src/core/live/network.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { withValidDocument } from '../support/documents.ts'
import { folderWith } from '../support/folder.ts'
import { VARIABLES } from '../support/learning.ts'
import { loopbackLookup, nameServer } from '../support/outside.ts'
import { run as runIn } from '../support/run.ts'
import { junitFaults, sarifFaults, schemaFaults } from '../support/schemas.ts'

const REPORT_SCHEMA = JSON.parse(
  readFileSync(new URL('../../docs/reference/schemas/report.schema.json', import.meta.url), 'utf8'),
) as Record<string, unknown>

/** Environments that between them give rise to every shape of a report. */
const FILES: Readonly<Record<string, string>> = {
  empty: '',
  'everything at once': VARIABLES.map(
    ({ name, example }) => `${name}=${example || 'a-value-0123456789'}`,
  ).join('\n'),
  'every kind of bad line': [
    'not a line <&>"\'',
    'MAILER_API_KEY="unclosed',
    'A B=c',
    'LOG_LEVEL=loud',
    'LOG_LEVEL=info',
    'MAILER_FORM=x',
    "BUILD_STAMP='a' b",
    'SHAREDSTORE_REST_URL=https://limits.example',
    'EMAIL_DISPATCH_SECRET=changeme',
    'CORS_ALLOWED_ORIGINS=*',
    '\u0001\u0008=\u0002',
  ].join('\n'),
  'something outside':
    'API_URL=https://nowhere.invalid\nMAILER_API_KEY=a-key-0123456789\nMAILER_SMTP_URL=smtp://127.0.0.1:1\nMAILER_FROM=a@example.com\n',
}

async function run(text: string, format: string, more: readonly string[] = []): Promise<string> {
  const name = 'the env, & file.env'
  const network = openNetwork({ lookup: loopbackLookup, nameServers: [await nameServer({})] })
  const args = [
    'preflight',
    '-e',
    name,
    '--notices',
    '--deep',
    '--timeout',
    '2s',
    '--format',
    format,
    ...more,
  ]
  return (await runIn(args, { cwd: await folderWith({ [name]: text }), network })).stdout
}

const cases = Object.entries(FILES).map(([name, text]) => ({ name, text }))

test.each(cases)(
  'the report of $name is valid against the schemas of SARIF, JUnit and our JSON',
  async ({ text }) => {
    const sarif = await run(text, 'sarif')
    expect(sarifFaults(sarif)).toEqual([])
    // Code scanning refuses the whole file if one has none.
    const places = sarif.match(
      /"locations": \[\s*\{\s*"physicalLocation": \{\s*"artifactLocation": .*\s*"uri": "the%20env/g,
    )
    expect(places?.length).toBe(sarif.match(/"ruleIndex"/g)?.length)
    expect(await junitFaults(await run(text, 'junit', ['--strict']))).toEqual([])
    expect(schemaFaults(REPORT_SCHEMA, JSON.parse(await run(text, 'json')))).toEqual([])
  },
)

test('the schemas refuse what is not a report', async () => {
  expect(sarifFaults('{"version":"2.1.0","runs":[{"tool":{}}]}')).not.toEqual([])
  expect(await junitFaults('<testsuites><testcase/></testsuites>')).not.toEqual([])
  const report = JSON.parse(await run('', 'json')) as object
  expect(schemaFaults(REPORT_SCHEMA, { ...report, extra: 1 })).not.toEqual([])
})

test('every command that writes JSON has a published schema', async () => {
  const commands = allNodes(await documentedTree())
    .filter(({ options }) => options.some(({ name, words }) => name === '--format' && words.includes('json')))
    .map(({ path: words }) => words.join(' '))
  expect(commands.filter((command) => SCHEMA_OF[command] === undefined)).toEqual([])
  const published = Object.keys(jsonSchemas(learning))
  expect(Object.values(SCHEMA_OF).filter((name) => !published.includes(name))).toEqual([])
})

test('a captured document that violates its schema fails the test that captured it', () => {
  const removed = '{\n  "version": 1,\n  "outcome": "removed"\n}\n'
  expect(withValidDocument(removed, ['email', 'suppressions', 'remove', 'a@example.com'])).toBe(removed)
  expect(() => withValidDocument(removed, ['email', 'suppressions', 'add', 'a@example.com'])).toThrow(
    'email suppressions add: /outcome must be equal to one of the allowed values',
  )
  expect(() => withValidDocument('{\n  "version": 1,\n  "colour": "red"\n}\n')).toThrow(
    'a document that no published schema accepts',
  )
})

test('the command prints the schema that is published', async () => {
  const { code, stdout } = await runIn(['env', 'schema', '--report'])
  expect({ code, schema: JSON.parse(stdout) }).toEqual({ code: 0, schema: REPORT_SCHEMA })
})
