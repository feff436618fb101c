import { expect, test } from 'vitest'
import { LIVE_FINDINGS, WARNINGS } from '../../src/core/env/explanations.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { folderWith } from '../support/folder.ts'
import { RULES, VARIABLES } from '../support/learning.ts'
import { run } from '../support/run.ts'

test('the example names every variable, sets none, and passes preflight unchanged', async () => {
  const { stdout } = await run(['env', 'example'])
  for (const { name } of VARIABLES) expect(stdout).toMatch(new RegExp(`^# ${name}=`, 'm'))
  const cwd = await folderWith({ '.env': stdout })
  expect(await run(['preflight', '--env-file', '.env', '--strict'], { cwd })).toMatchObject({ code: 0 })
})

const OWN = { LIMITS: { kind: 'json', example: '{"a": 1}' }, NOTE: { kind: 'text', example: "it's # 1" } }

test.each([
  learning,
  resolvePlatform(
    { preset: 'base', groups: { own: { unlocks: 'a', absent: 'b', variables: OWN } } },
    { folder: '/' },
  ),
])('every value of the example is well-formed once its line is uncommented: $name', async (platform) => {
  const { stdout } = await run(['env', 'example'], { platform })
  const cwd = await folderWith({ '.env': stdout.replace(/^# ([A-Z0-9_]+=.+)$/gm, '$1') })
  const report = JSON.parse(
    (await run(['preflight', '--env-file', '.env', '--format', 'json'], { cwd, platform })).stdout,
  ) as { findings: { id: string; present: string[] }[] }
  expect(report.findings.filter(({ id }) => id === 'malformed-value' || id === 'unreadable-line')).toEqual([])
})

test.each([
  ...VARIABLES.map(({ name }) => name),
  ...RULES.map(({ id }) => id),
  ...Object.keys(WARNINGS),
  ...Object.keys(LIVE_FINDINGS),
  'contrast-low',
])('explains %s', async (name) => {
  const { code, stdout } = await run(['env', 'explain', name])
  expect(code).toBe(0)
  expect(stdout.split('\n').length).toBeGreaterThan(2)
})

test.each([
  ['mail-without-sendr', 'mail-without-sender'],
  ['live-nmae', 'live-name'],
  ['payment', 'payments'],
  // Every object has it.
  ['constructor', undefined],
])('env explain %s is wrong usage, and answered with %s', async (name, near) => {
  const { code, stderr } = await run(['env', 'explain', name])
  expect([code, / Did you mean (.+)\?\n$/.exec(stderr)?.[1]]).toEqual([2, near])
})

test('on a terminal an explanation is wrapped, and off it a sentence is one line', async () => {
  const piped = (await run(['env', 'explain', 'sender-spf'])).stdout
  const written: string[] = []
  const stdout = { columns: 50, write: (text: string) => written.push(text) }
  await run(['env', 'explain', 'sender-spf'], { stdout })
  const shown = written.join('')
  expect(Math.max(...shown.split('\n').map((line) => line.length))).toBeLessThanOrEqual(50)
  expect(shown.replace(/\s+/g, ' ')).toBe(piped.replace(/\s+/g, ' '))
})

test('the list says what is set and never to what, and tells a malformed value, which behaves as absent', async () => {
  const env = { RATE_LIMIT_PER_MINUTE: 'many', MAILER_API_KEY: 'canary-value' }
  const { code, stdout } = await run(['env', 'list'], { env })
  expect(code).toBe(0)
  expect(stdout).toMatch(/● set +MAILER_API_KEY/)
  expect(stdout).toMatch(/^mail {2}half-configured$/m)
  expect(stdout).not.toContain('canary')
  expect(stdout).toMatch(/limits {2}absent\n {2}▲ malformed {2}RATE_LIMIT_PER_MINUTE/)
})

test('env diff fails for a name of no group that differs, and says that it is not in the contract', async () => {
  const cwd = await folderWith({ 'a.env': 'KILN_KEY=one\n', 'b.env': 'KILN_KEY=two\n' })
  expect(await run(['env', 'diff', 'a.env', 'b.env'], { cwd })).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^~ KILN_KEY +different values, not in the contract$/m),
  })
})

test('env diff names no line of a wrapped secret', async () => {
  const key = 'DATASTORE_JWT_SECRET=-----BEGIN KEY-----\nwrapped0123\n-----END KEY-----\n'
  const cwd = await folderWith({ 'a.env': key, 'b.env': 'BUILD_STAMP=x\n' })
  const { stdout } = await run(['env', 'diff', 'a.env', 'b.env'], { cwd })
  expect(stdout).toContain('DATASTORE_JWT_SECRET')
  expect(stdout).not.toMatch(/wrapped0123|END KEY/)
})

test('an explanation says what a variable is for, its group, its readers, whether it is secret, and its rules', async () => {
  const variables = {
    KILN_KEY: { kind: 'secret', summary: 'Opens the kiln.' },
    KILN_REGION: { kind: 'enum', of: ['eu', 'us'], default: 'eu', example: 'us' },
  }
  const group = { unlocks: 'bookings', absent: 'nobody books', services: ['web'], variables }
  const rules = [{ allOrNone: ['KILN_KEY', 'KILN_REGION'] }, { forbidden: 'KILN_REGION', value: 'us' }]
  const platform = resolvePlatform(
    { preset: 'base', services: { web: {}, shop: { port: 4000 } }, groups: { kiln: { ...group, rules } } },
    { folder: '/' },
  )
  const explained = async (name: string) => (await run(['env', 'explain', name], { platform })).stdout
  const rule = 'rule      kiln-all-or-none: .*\n'
  const both = `${rule}rule      kiln-forbidden-value: .*\n`
  expect(await explained('KILN_KEY')).toMatch(
    new RegExp(
      `^KILN_KEY
Opens the kiln\\.

group     kiln: unlocks bookings; when absent, nobody books
takes     a key without control characters
read by   web
malformed an error
secret    yes; KILN_KEY_FILE may name a file that holds it
${rule}$`,
    ),
  )
  expect(await explained('KILN_REGION')).toMatch(
    new RegExp(
      `\ntakes     one of eu, us\nread by   web\nmalformed an error\nsecret    no\ndefault   eu\nexample   us\n${both}$`,
    ),
  )
  expect(await explained('kiln')).toMatch(
    new RegExp(
      `^kiln \\(a group of variables\\)\nUnlocks bookings\\.\nWhen absent: nobody books\\.\n\nvariables KILN_KEY, KILN_REGION\n${both}$`,
    ),
  )
})

test.each([
  ['cors-wildcard', 'error'],
  ['secret-set-twice', 'error'],
  ['unreadable-secret-file', 'error'],
  ['malformed-value', 'warning'],
  ['group-absent', 'notice'],
  ['live-name', 'a live check of preflight --deep'],
  ['contrast-low', 'error of platformctl email lint'],
])('env explain says that %s is %j', async (id, kind) => {
  const [title] = (await run(['env', 'explain', id])).stdout.split('\n')
  expect(title).toBe(`${id} (${kind})`)
})
