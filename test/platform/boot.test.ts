import { expect, onTestFinished, test, vi } from 'vitest'
import { openPlatform } from '../../src/daemon/index.ts'
import type { PlatformDefinition } from '../../src/platform/definition.ts'
import { readPlatformEnv, registerPlatform, validatePlatformEnv } from '../../src/platform/read-env.ts'
import { ceramics } from './ceramics.ts'

const platform = ceramics() as PlatformDefinition
const HALF = { KILN_API_KEY: 'canary-71d0-of-the-kiln' }

/** The text of the error that this throws. */
function faultOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return String(error)
  }
  throw new Error('nothing was thrown')
}

test('does not start on an environment that breaks a rule of the definition, and reports it by its own names without a value', () => {
  expect(() => registerPlatform(platform, HALF)).toThrow(/kiln-all-or-none[\s\S]*KILN_API_SECRET/)
  expect(() => registerPlatform(platform, HALF)).not.toThrow(/canary/)
  expect(registerPlatform(platform, {}).ok).toBe(true)
  vi.stubEnv('KILN_API_KEY', HALF.KILN_API_KEY)
  onTestFinished(() => void vi.unstubAllEnvs())
  expect(() => registerPlatform(platform)).toThrow(/kiln-all-or-none/)
})

test('validating for one service leaves out what only others read', () => {
  expect(validatePlatformEnv(platform, HALF).ok).toBe(false)
  expect(validatePlatformEnv(platform, HALF, ['web']).ok).toBe(false)
  expect(validatePlatformEnv(platform, HALF, ['bookings']).ok).toBe(true)
})

test('what is required while something else is set is no less missing in health than what always is', async () => {
  const variables = { HALL_URL: { kind: 'url' } } as const
  const group = { unlocks: 'a', absent: 'b', variables, required: { when: 'STORE_URL' } } as const
  const probes = { hall: { service: 'web', group: 'hall', http: 'HALL_URL' } } as const
  const definition: PlatformDefinition = { preset: 'base', groups: { hall: group }, probes }
  for (const [env, reason] of [
    [{}, 'not configured'],
    [{ STORE_URL: 'sqlite:./hall.sqlite' }, 'required, and not set'],
  ] as const) {
    const opened = openPlatform({ env, platform: definition })
    onTestFinished(() => opened.close())
    expect((await opened.health('web')).probes.hall).toMatchObject({ reason })
  }
})

const choir = {
  preset: 'base',
  services: { web: {} },
  groups: {
    members: {
      unlocks: 'the members',
      absent: 'there are none',
      variables: { MEMBERS_URL: { kind: 'url', required: true }, MEMBERS_KEY: { kind: 'secret' } },
    },
    app: {
      unlocks: 'the site',
      absent: '-',
      always: true,
      variables: {
        APP_KEY: { kind: 'secret', required: true },
        APP_TITLE: { kind: 'text', default: 'Choir' },
      },
    },
  },
  probes: { members: { service: 'web', group: 'members', http: 'MEMBERS_URL' } },
} as const satisfies PlatformDefinition

test('what is required stops a boot, degrades the health of an embedding program, and cannot be read by mistake', async () => {
  expect(() => registerPlatform(choir, {})).toThrow(
    /required-missing: MEMBERS_URL is required[\s\S]*required-missing: APP_KEY is required/,
  )
  const opened = openPlatform({ env: {}, platform: choir })
  onTestFinished(() => opened.close())
  expect(opened.validate().ok).toBe(false)
  expect((await opened.health('web')).probes).toMatchObject({
    members: { state: 'degraded', reason: 'required, and not set' },
  })
  const { members, app } = readPlatformEnv(choir, { MEMBERS_KEY: 'a-key-of-some-length' })
  expect(members).toBeUndefined()
  expect(app.APP_TITLE).toBe('Choir')
  expect(() => app.APP_KEY).toThrow('APP_KEY is required, and it is not set or malformed.')
  expect(JSON.stringify(app)).toBe('{"APP_TITLE":"Choir"}')
})

test('forty missing variables refuse a boot in less than 2 kB', () => {
  const names = Array.from({ length: 40 }, (_, index) => `MEMBERS_VARIABLE_${index + 1}`)
  const variables = Object.fromEntries(names.map((name) => [name, { kind: 'text', required: true } as const]))
  const crowded: PlatformDefinition = {
    preset: 'base',
    groups: { members: { unlocks: 'the members', absent: 'there are none', always: true, variables } },
  }
  const refused = () => registerPlatform(crowded, {})
  expect(refused).toThrow(
    'The environment has 40 errors.\n  required-missing: MEMBERS_VARIABLE_1 is required',
  )
  expect(refused).toThrow(/\n {2}and \d\d more \(required-missing\): platformctl preflight$/)
  expect(refused).not.toThrow(/^.{1600}/s)
  const said = faultOf(refused)
  const shown = said.match(/required-missing: /g)?.length ?? 0
  expect(shown + Number(/and (\d+) more/.exec(said)?.[1])).toBe(40)
})

test('variables of the default platform mean nothing to another', () => {
  const env = { HARDWARE_A_TOKEN: 'x'.repeat(32), MODEL_A_MODEL: 'large' }
  expect(validatePlatformEnv(platform, env).findings.filter(({ severity }) => severity === 'error')).toEqual(
    [],
  )
})

test('web alone is called by no other origin, so its boot does not warn of CORS', async () => {
  const warnings: string[] = []
  // Platforms of other tests in this process may warn meanwhile.
  const keep = ({ name }: Error) => void (name === 'platformctl' || warnings.push(name))
  process.on('warning', keep)
  onTestFinished(() => void process.off('warning', keep))
  registerPlatform(platform, {})
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings).toEqual([])
})

test('a definition with faults is refused with all of them', () => {
  expect(() => validatePlatformEnv({ preset: 'bsae' as 'base' }, {})).toThrow(/bsae/)
})
