import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { documentedTree } from '../../scripts/command-tree.ts'
import { jsonSchemas, SCHEMA_OF } from '../../scripts/json-schemas.ts'
import { allNodes } from '../../src/cli/command.ts'
import { runProgram } from '../../src/cli/program.ts'
import { openNetwork } from '../../src/core/live/network.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { testContext } from '../support/context.ts'
import { withValidDocument } from '../support/documents.ts'
import { emptyFolder } from '../support/folder.ts'
import { VARIABLES } from '../support/learning.ts'
import { loopbackLookup, nameServer } from '../support/outside.ts'
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
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, 'the env, & file.env'), text)
  const network = openNetwork({ lookup: loopbackLookup, nameServers: [await nameServer({})] })
  const { context, stdout } = testContext({ cwd, network })
  await runProgram(
    [
      'preflight',
      '--env-file',
      'the env, & file.env',
      '--notices',
      '--deep',
      '--timeout',
      '2s',
      '--format',
      format,
      ...more,
    ],
    context,
  )
  return stdout()
}

const cases = Object.entries(FILES).map(([name, text]) => ({ name, text }))

test.each(cases)('SARIF of $name is valid against the schema of OASIS', async ({ text }) => {
  expect(sarifFaults(await run(text, 'sarif'))).toEqual([])
})

test.each(cases)('JUnit of $name is valid against the common schema', async ({ text }) => {
  expect(await junitFaults(await run(text, 'junit'))).toEqual([])
  expect(await junitFaults(await run(text, 'junit', ['--strict']))).toEqual([])
})

test.each(cases)('JSON of $name is valid against the published schema', async ({ text }) => {
  expect(schemaFaults(REPORT_SCHEMA, JSON.parse(await run(text, 'json')))).toEqual([])
})

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
  const { context, stdout } = testContext()
  expect(await runProgram(['env', 'schema', '--report'], context)).toBe(0)
  expect(JSON.parse(stdout())).toEqual(REPORT_SCHEMA)
})

test('SARIF fingerprints stay when lines or values change, and no two results share one', async () => {
  const prints = async (text: string) => {
    const { runs } = JSON.parse(await run(text, 'sarif')) as {
      runs: { results: { ruleId: string; partialFingerprints?: { primaryLocationLineHash: string } }[] }[]
    }
    return (runs[0]?.results ?? []).flatMap(({ ruleId, partialFingerprints: own }) =>
      own ? `${ruleId} ${own.primaryLocationLineHash}` : [],
    )
  }
  const before = await prints('EMAIL_DISPATCH_SECRET=changeme\nnot a line\nnor this\n')
  expect(new Set(before).size).toBe(before.length)
  expect(before.filter((one) => one.endsWith(':2'))).not.toEqual([])
  expect(await prints('# moved down\n\nEMAIL_DISPATCH_SECRET=changeme2\nnot a line\nnor this\n')).toEqual(
    before,
  )
})
