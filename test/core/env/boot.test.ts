import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { parseEnvFile } from '../../../src/core/env/reader.ts'
import { registerEnvironment, validate } from '../../../src/core/env/validate.ts'
import { register, validateAgent, validateAll, validateApi, validateWeb } from '../../../src/env.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { contract, SERVICES, VARIABLES } from '../../support/learning.ts'

const VALUES = [
  '',
  ' ',
  'changeme',
  'canary value',
  'https://service.example.com',
  'sk_live_canarycanary',
  'canary@example.com',
  '7',
  '-1',
  '*',
  'sqlite:./canary.sqlite',
  'smtp://127.0.0.1:25',
]
const environments = fc
  .array(
    fc.tuple(
      fc.constantFrom(...VARIABLES.map(({ name }) => name), 'MAILER_FORM', 'PATH'),
      fc.constantFrom(...VALUES),
    ),
    { maxLength: 20 },
  )
  .map((pairs) => Object.fromEntries(pairs))
const told = (report: {
  findings: readonly { id: string; severity: string; present: readonly string[] }[]
}) => report.findings.map(({ id, severity, present }) => `${severity} ${id} ${present.join(' ')}`)

test('boot and preflight give the same finding ids and severities on any environment', () => {
  fc.assert(
    fc.property(environments, (env) => {
      const file = Object.entries(env)
        .map(([name, value]) => `${name}='${value}'`)
        .join('\n')
      const placed = new Map(parseEnvFile(contract, file, '.env').assignments.map((one) => [one.name, one]))
      const fromFile = Object.fromEntries([...placed].map(([name, { value }]) => [name, value]))
      const preflight = validate(contract, fromFile, SERVICES, (name) => placed.get(name))
      expect(told(preflight)).toEqual(told(validateAll(env)))
    }),
    { numRuns: 250 },
  )
})

test('a service’s findings are those of all three services, minus the ones about variables that it does not read', () => {
  const validators = [validateWeb, validateApi, validateAgent, validateAll]
  expect(validators.map((of) => of({}).services)).toEqual([['web'], ['api'], ['agent'], SERVICES])
  fc.assert(
    fc.property(environments, (env) => {
      const all = new Set(told(validateAll(env)))
      for (const one of [validateWeb(env), validateApi(env), validateAgent(env)]) {
        for (const finding of one.findings) {
          if (finding.severity !== 'notice')
            expect(all).toContain(`${finding.severity} ${finding.id} ${finding.present.join(' ')}`)
          expect(finding.services.length).toBeGreaterThan(0)
        }
        for (const name of one.groups.flatMap(({ present }) => present))
          expect(contract.find(name)?.services).toEqual(expect.arrayContaining([...one.services]))
      }
    }),
    { numRuns: 100 },
  )
})

test('register throws once for all that is half-configured, in the environment of the process if none is given, names it, and quotes no value', () => {
  const env = {
    MAILER_API_KEY: 'canary-key',
    SHAREDSTORE_REST_URL: 'https://canary.example.com',
    CORS_ALLOWED_ORIGINS: '*',
  }
  expect(() => register(env)).toThrow(
    /^The environment has 4 errors\.\n {2}sharedstore-pair[\s\S]*mail-without-sender[\s\S]*mail-without-route[\s\S]*cors-wildcard/,
  )
  expect(() => register({ CORS_ALLOWED_ORIGINS: '*' })).toThrow(/^The environment has an error\.\n/)
  expect(() => register(env)).not.toThrow(/canary/)
  expect(register({ CORS_ALLOWED_ORIGINS: 'https://www.example.com' }).ok).toBe(true)
  vi.stubEnv('CORS_ALLOWED_ORIGINS', '*')
  onTestFinished(() => void vi.unstubAllEnvs())
  expect(() => register()).toThrow(/cors-wildcard/)
})

test('register emits a RuntimeWarning while CORS is at its localhost default, and not afterwards', async () => {
  const warnings: string[] = []
  // A platform that another file opened in this process may still have something to say.
  const keep = ({ name }: Error) => name.endsWith('Warning') && warnings.push(name)
  process.on('warning', keep)
  onTestFinished(() => void process.off('warning', keep))
  register({})
  await expect.poll(() => warnings).toEqual(['RuntimeWarning'])
  register({ CORS_ALLOWED_ORIGINS: 'https://www.example.com' })
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings).toEqual(['RuntimeWarning'])
  // A malformed value behaves as absent.
  register({ CORS_ALLOWED_ORIGINS: 'www.example.com' })
  await expect.poll(() => warnings).toEqual(['RuntimeWarning', 'EnvironmentWarning', 'RuntimeWarning'])
})

test('register is silent about CORS on a platform of which browsers call only web', async () => {
  const warnings: string[] = []
  const keep = ({ name }: Error) => name.endsWith('Warning') && warnings.push(name)
  process.on('warning', keep)
  onTestFinished(() => void process.off('warning', keep))
  const web = learning.services.filter(({ name }) => name === 'web')
  registerEnvironment({ ...learning, services: web }, {})
  // One that is elsewhere is not called here.
  const elsewhere = learning.services.map(({ port: _, ...service }) => service)
  registerEnvironment({ ...learning, services: elsewhere }, {})
  const { find } = learning.contract
  const deaf = {
    ...learning.contract,
    find: (name: string) => (name === 'CORS_ALLOWED_ORIGINS' ? undefined : find(name)),
  }
  registerEnvironment({ ...learning, contract: deaf }, {})
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings).toEqual([])
  registerEnvironment(learning, { RATE_LIMIT_PER_MINUTE: 'many' })
  await expect.poll(() => warnings.toSorted()).toEqual(['EnvironmentWarning', 'RuntimeWarning'])
})
