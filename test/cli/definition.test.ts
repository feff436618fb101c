import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { execa } from 'execa'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { takeConfigWords } from '../../src/cli/choose-platform.ts'
import { ceramics } from '../platform/ceramics.ts'
import { platformctl } from '../support/cli.ts'
import { command } from '../support/in-process.ts'
import { serve } from '../support/servers.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kiln-school-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const write = (name: string, text: string) => writeFile(path.join(folder, name), text)
/** A process of its own: for definitions that end it, print or are written anew. */
const spawn = (args: string[]) => platformctl(args, { cwd: folder })
const run = (args: string[]) => command(args, { cwd: folder })

const { preset, name, services, groups, probes } = ceramics()
const KILN = `import { definePlatform } from 'platformctl/config'

export default definePlatform(${JSON.stringify({ preset, name, services, groups, probes })})
`
const CANARY = 'canary-71d0'

describe('with a definition', () => {
  beforeEach(() => write('platform.config.ts', KILN))

  test('preflight knows its groups and rules, in every format, and no secret is shown', async () => {
    await write('.env', `KILN_API_KEY=${CANARY}\nKILN_REGION=${CANARY}\n`)
    for (const format of ['text', 'json', 'github', 'sarif', 'junit']) {
      const { exitCode, stdout, stderr } = await run(['preflight', '--env-file', '.env', '--format', format])
      expect(exitCode).toBe(1)
      expect(stdout).toContain('KILN_API_SECRET')
      expect(stdout).toContain('kiln-all-or-none')
      expect(stdout).not.toMatch(/qubit|hardware|tutor/i)
      expect(stdout + stderr).not.toContain(CANARY)
    }
  })

  test('names that no group knows are counted in one notice', async () => {
    await write('.env', 'KILN_REGION=eu\nOTHER_ONE=1\nANOTHER=2\nKILN_REGIONS=eu\n')
    const { exitCode, stdout } = await run(['env', 'check', '.env', '--notices'])
    expect(exitCode).toBe(0)
    expect(stdout).toContain('2 names in the files are in no group of this platform')
    expect(stdout).toMatch(/KILN_REGIONS[\s\S]*Did you mean KILN_REGION/)
    expect((await run(['env', 'check', '.env'])).stdout).not.toContain('no group')
    // A variable that only another service reads is known too.
    const one = await run([
      'preflight',
      '--env-file=.env',
      '--notices',
      '--service=bookings',
      '--format=json',
    ])
    expect(one.stdout).toContain('3 names in the files are in no group of this platform')
    await write('.env', 'KILN_API_KEY_FILE=/run/absent/key\n')
    expect((await run(['env', 'check', '.env', '--notices'])).stdout).not.toContain('no group')
  })

  test('the env commands speak of its variables', async () => {
    await write('.env', 'KILN_REGION=eu\n')
    for (const args of [
      ['env', 'list', '--format', 'json'],
      ['env', 'example'],
      ['env', 'schema'],
      ['env', 'explain', 'KILN_REGION'],
      ['env', 'explain', 'kiln-all-or-none'],
      ['env', 'types'],
      ['env', 'check', '.env', '--notices'],
    ]) {
      const { exitCode, stdout } = await run(args)
      expect(exitCode).toBe(0)
      expect(stdout).toMatch(/KILN_|kiln/)
      expect(stdout).not.toMatch(/HARDWARE|MODEL_A/)
    }
    expect((await run(['env', 'explain', 'KILN_REGION'])).stdout).toMatch(/^default +eu$/m)
    expect((await run(['env', 'explain', 'KILN_API_KEY'])).stdout).not.toContain('default')
  })

  test('it goes with an option before or after the command, and --no-config ignores it', async () => {
    await mkdir(path.join(folder, 'ops'))
    await write('ops/other.json', '{ "preset": "base", "services": { "web": {} }, "without": ["payments"] }')
    const names = async (...args: string[]) => {
      const { stdout } = await run(args)
      return (JSON.parse(stdout) as { groups: { name: string }[] }).groups.map(({ name }) => name)
    }
    expect(await names('env', 'list', '--format', 'json')).toContain('kiln')
    for (const args of [
      ['--config', 'ops/other.json', 'env', 'list', '--format', 'json'],
      ['env', 'list', '--format', 'json', '--config=ops/other.json'],
    ]) {
      expect(await names(...args)).not.toContain('kiln')
      expect(await names(...args)).not.toContain('payments')
    }
    expect(await names('env', 'list', '--no-config', '--format', 'json')).toContain('hardware')
  })

  test('env types writes a file that tells what readPlatformEnv gives, and replaces only its own', async () => {
    expect(await run(['env', 'types', '--out', 'env.d.ts'])).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'Wrote env.d.ts.',
    })
    const text = await readFile(path.join(folder, 'env.d.ts'), 'utf8')
    expect(text).toMatch(
      /readonly kiln:\s+\| \{\s+readonly KILN_API_KEY: Secret\s+readonly KILN_API_SECRET: Secret\s+readonly KILN_REGION: "eu" \| "us"\s+\}/,
    )
    expect(text).toContain('KILN_API_KEY?: string')
    expect((await run(['env', 'types', '--out', 'env.d.ts'])).exitCode).toBe(0)
    await write('mine.d.ts', 'export {}\n')
    expect(await run(['env', 'types', '--out', 'mine.d.ts'])).toMatchObject({ exitCode: 2 })
    expect(await readFile(path.join(folder, 'mine.d.ts'), 'utf8')).toBe('export {}\n')
    // As a full disk leaves it.
    await write('env.d.ts', '')
    expect((await run(['env', 'types', '--out', 'env.d.ts'])).exitCode).toBe(0)
    expect(await readFile(path.join(folder, 'env.d.ts'), 'utf8')).toBe(text)
  })

  test.skipIf(process.platform === 'win32')(
    'env types neither reads nor waits for a device or a pipe',
    async () => {
      await execa('mkfifo', [path.join(folder, 'pipe')])
      for (const out of ['pipe', '/dev/zero'])
        expect(await run(['env', 'types', '--out', out])).toMatchObject({
          exitCode: 2,
          stderr: expect.stringContaining('it holds something else'),
        })
    },
  )

  test('email types writes a file that tells the mails and their slots, and replaces only its own', async () => {
    expect((await run(['email', 'types', '--out', 'mails.d.ts'])).exitCode).toBe(0)
    const text = await readFile(path.join(folder, 'mails.d.ts'), 'utf8')
    expect(text).toMatch(/interface PlatformMails \{\n {4}readonly /)
    expect(text).not.toMatch(/readonly '?(?:quantum|course-day)/)
    expect((await run(['email', 'types', '--out', 'mails.d.ts'])).exitCode).toBe(0)
    // The file of the other command is not its own.
    expect((await run(['env', 'types', '--out', 'mails.d.ts'])).exitCode).toBe(2)
  })
})

describe('with variables that are required', () => {
  beforeEach(() =>
    write(
      'platform.config.ts',
      `export default {
  preset: 'base',
  name: 'Choir',
  services: { web: {}, tickets: { port: 0 }, archive: { address: 'ARCHIVE_URL', health: '/', format: 'status' } },
  groups: {
    database: {
      unlocks: 'the members', absent: 'there are no members', services: ['web'],
      variables: { DATABASE_URL: { kind: 'postgres-url', required: true }, DATABASE_POOL: { kind: 'integer', default: 5 } },
    },
    app: {
      unlocks: 'the site', absent: '-', always: true, services: ['web'],
      variables: { APP_NAME: { kind: 'text', default: 'Choir' }, APP_SEATS: { kind: 'integer', malformed: 'warn' } },
    },
    feature: {
      unlocks: 'tickets', absent: 'no tickets', services: ['tickets'],
      variables: { FEATURE_TICKETS: { kind: 'boolean', default: false } },
    },
    tickets: {
      unlocks: 'selling', absent: 'nothing is sold', services: ['tickets'], required: { when: 'feature' },
      variables: { TICKETS_KEY: { kind: 'secret' }, TICKETS_PEM: { kind: 'pem', required: 'production' } },
    },
    archive: { unlocks: 'recordings', absent: 'no recordings', variables: { ARCHIVE_URL: { kind: 'url' } } },
  },
  probes: { members: { service: 'web', group: 'database', postgres: 'DATABASE_URL' } },
}`,
    ),
  )

  const check = async (env: string, ...options: string[]) => {
    await write('.env', env)
    const { exitCode, stdout } = await run(['preflight', '-e', '.env', '--format', 'json', ...options])
    const { findings, groups } = JSON.parse(stdout) as {
      findings: { id: string; severity: string; missing: string[]; present: string[] }[]
      groups: { name: string; state: string }[]
    }
    const errors = findings.filter(({ severity }) => severity === 'error')
    return {
      exitCode,
      errors: errors.map(({ id, missing, present }) => `${id} ${[...missing, ...present].join(' ')}`),
      warnings: findings.flatMap(({ id, severity, present }) =>
        severity === 'warning' && id === 'malformed-value' ? present : [],
      ),
      states: Object.fromEntries(groups.map(({ name, state }) => [name, state])),
    }
  }
  const DATABASE = 'DATABASE_URL=postgres://choir@127.0.0.1/choir\n'

  test('what is required is an error of preflight, for the services that read it alone', async () => {
    expect(await check('')).toMatchObject({
      exitCode: 1,
      errors: ['required-missing DATABASE_URL'],
      states: { database: 'absent', app: 'configured', feature: 'absent' },
    })
    expect(await check('', '--service', 'tickets')).toMatchObject({ exitCode: 0, errors: [] })
    expect(await check('DATABASE_POOL=7\n', '--service', 'web')).toMatchObject({
      exitCode: 1,
      states: { database: 'half-configured' },
    })
    expect(await check(DATABASE)).toMatchObject({
      exitCode: 0,
      errors: [],
      states: { database: 'configured' },
    })
    expect(await check(`${DATABASE}FEATURE_TICKETS=false\n`)).toMatchObject({
      exitCode: 1,
      errors: ['required-missing TICKETS_KEY TICKETS_PEM FEATURE_TICKETS'],
      states: { feature: 'configured', tickets: 'absent' },
    })
    expect(await check(`${DATABASE}DEPLOY_ENVIRONMENT=production\n`)).toMatchObject({
      errors: ['required-missing TICKETS_PEM DEPLOY_ENVIRONMENT'],
    })
    expect(await check(`${DATABASE}DEPLOY_ENVIRONMENT=staging\n`)).toMatchObject({ exitCode: 0 })
  })

  test('a malformed value of its own is an error, unless the variable or the preset takes it as a warning', async () => {
    expect(await check('DATABASE_URL=postgres//typo\n')).toMatchObject({
      exitCode: 1,
      // That it is required, too, would say the same twice.
      errors: ['malformed-value DATABASE_URL'],
      states: { database: 'half-configured' },
    })
    expect(await check(`${DATABASE}APP_SEATS=many\nRATE_LIMIT_PER_MINUTE=many\n`)).toMatchObject({
      exitCode: 0,
      errors: [],
      warnings: ['RATE_LIMIT_PER_MINUTE', 'APP_SEATS'],
    })
    expect(await check(`${DATABASE}ARCHIVE_URL=nowhere\n`)).toMatchObject({
      errors: ['malformed-value ARCHIVE_URL'],
    })
  })

  test('every output names what is missing', async () => {
    await write('.env', 'FEATURE_TICKETS=true\n')
    for (const format of ['text', 'github', 'sarif', 'junit']) {
      const { exitCode, stdout } = await run(['preflight', '--env-file', '.env', '--format', format])
      expect(exitCode).toBe(1)
      expect(stdout).toContain('required-missing')
      expect(stdout).toMatch(/DATABASE_URL is required, and it is\s+not set\./)
      expect(stdout).toContain('The group tickets is required while the group feature is on')
      if (format === 'github')
        expect(stdout).toMatch(/file=.env,line=1,col=1.*Missing: TICKETS_KEY, TICKETS_PEM\./)
    }
    expect(JSON.parse((await run(['env', 'list', '--format', 'json'])).stdout).groups).toContainEqual(
      expect.objectContaining({
        name: 'database',
        variables: [
          expect.objectContaining({ name: 'DATABASE_URL', set: false, missing: true }),
          expect.objectContaining({ name: 'DATABASE_POOL', missing: false }),
        ],
      }),
    )
    await write('.env.malformed', 'DATABASE_URL=nope\n')
    const listed = await run(['env', 'list', '--env-file', '.env.malformed', '--format', 'json'])
    const [malformed] = JSON.parse(listed.stdout).groups.find(
      (one: { name: string }) => one.name === 'database',
    ).variables
    expect(malformed).toMatchObject({ set: true, malformed: true, missing: false })
    for (const [words, says] of [
      ['list', '✖ required   DATABASE_URL'],
      ['explain DATABASE_URL', 'required-missing: DATABASE_URL is required'],
      ['explain tickets', 'required while the group feature is on'],
      ['list --env-file .env', '✖ required   TICKETS_KEY'],
      ['list --env-file .env', '✖ required   TICKETS_PEM'],
      ['explain required-missing', '(error)'],
      ['example', '# Required. Read by web.\n# DATABASE_URL=postgres://app@db'],
      ['example', 'When absent: nothing is sold. Required while the group feature is on.'],
      ['example', 'unless it says that it is required'],
      ['schema', 'DATABASE_URL is required'],
      ['types', 'readonly DATABASE_URL: Secret\n'],
      ['types', 'readonly app:\n    | {'],
    ] as const)
      expect((await run(['env', ...words.split(' ')])).stdout, words).toContain(says)
  })

  test.each(['mjs', 'cjs'])(
    'a program that is refused at boot prints the findings and no bundle (%s)',
    async (type) => {
      const config = new URL('../../dist/config.js', import.meta.url).pathname
      const load =
        type === 'mjs'
          ? `import { registerPlatform } from '${config}'`
          : `const { registerPlatform } = require('${config}')`
      await write(
        `boot.${type}`,
        `${load}
registerPlatform({ preset: 'base', services: { web: {} }, groups: { a: { unlocks: 'a', absent: 'b', variables: { A_URL: { kind: 'url', required: true } } } } }, {})`,
      )
      const { status, stderr } = spawnSync(process.execPath, [`boot.${type}`], {
        cwd: folder,
        encoding: 'utf8',
      })
      expect(status).toBe(1)
      expect(stderr).toContain('required-missing: A_URL is required, and it is not set. Set A_URL.')
      expect(stderr.length).toBeLessThan(2000)
      expect(stderr).not.toContain('dist/')
    },
  )

  test('the daemon does not start without what its services require', async () => {
    expect(await run(['daemon', '--service', 'web', '--data', path.join(folder, 'data')])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/required-missing[\s\S]*DATABASE_URL is required/),
    })
  })
})

test.each<[what: string, text: string, sentence: RegExp, by?: typeof run]>([
  [
    'throws',
    `throw new Error('${CANARY}')`,
    /^platformctl: platform\.config\.ts: Line 1: It throws Error while it loads/,
    run,
  ],
  [
    'never ends',
    `export default Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`,
    /did not finish loading within 5 seconds/,
  ],
  ['ends the process', `console.log('${CANARY}')\nprocess.exit(0)`, /ends the process while it loads/],
  ['exports nothing', `export const platform = {}`, /exports no definition/, run],
  [
    'has a fault',
    `export default { name: 3 }`,
    /^platformctl: platform\.config\.ts: name: This is a number, not text\./,
    run,
  ],
  [
    'has two faults',
    `export default { name: 3, groups: 4 }`,
    /has 2 faults\.\n {2}name: .*\n {2}groups: /,
    run,
  ],
  [
    'names missing folders',
    `export default { preset: 'base', mails: './nowhere', courses: { a: { lessons: './nothing' } } }`,
    /mails: There is no folder "\.\/nowhere"\..*\n.*courses\.a\.lessons: There is no folder "\.\/nothing"\./,
    run,
  ],
  [
    'has a course without lessons',
    `export default { preset: 'base', courses: { a: { lessons: '.' } } }`,
    /courses\.a\.lessons: The folder "\." holds no lessons\. Add one, as 1-first-steps\.md, or remove the course\./,
    run,
  ],
])(
  'every command exits with 2 and a sentence if the definition %s',
  async (_, text, sentence, by = spawn) => {
    await write('platform.config.ts', text)
    const { exitCode, stdout, stderr } = await by(['preflight', '--format', 'json'])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(sentence)
    expect(stderr).not.toMatch(/\n\s+at /)
    if (text.includes('throw')) expect(stderr).not.toContain(CANARY)
  },
)

test.skipIf(process.getuid?.() !== 0)(
  'a definition of another user exits with 2 before it runs, unless --config names it',
  async () => {
    await write(
      'platform.config.ts',
      `console.log('${CANARY}')\nexport default { name: 'Ada', preset: 'base' }`,
    )
    await chown(path.join(folder, 'platform.config.ts'), 1001, 1001)
    const { exitCode, stdout, stderr } = await spawn(['preflight'])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^platformctl: platform\.config\.ts: The file belongs to another user.*--config/)
    expect(stderr).not.toContain(CANARY)
    expect((await spawn(['preflight', '--config', 'platform.config.ts'])).exitCode).toBe(0)
  },
)

test('the help of a command names what the definition has, asked for in either way', async () => {
  await write(
    'platform.config.json',
    '{ "preset": "base", "services": { "web": {}, "kiosk": { "port": 4000 } } }',
  )
  for (const words of ['help daemon', 'daemon --help']) {
    const { stdout } = await run(words.split(' '))
    expect(stdout).toContain('--kiosk-port')
    expect(stdout).not.toContain('--agent-port')
  }
})

test('help and version are there whatever state the definition is in', async () => {
  await write('platform.config.ts', 'throw 1')
  for (const words of [
    'preflight --help',
    '--version',
    'help env',
    'completion bash',
    'runbook mail-refused',
    '',
  ])
    expect((await run(words.split(' ').filter(Boolean))).exitCode, words).toBe(0)
  await write('platform.config.ts', 'process.exit(3)')
  expect((await spawn(['--help'])).exitCode).toBe(0)
})

test('init writes a definition from an example, which loads and passes', async () => {
  await write(
    '.env.example',
    `# Web address of the shop.\nSHOP_URL=https://shop.example\n\n# --- Stripe-like billing\nBILLING_API_KEY=\nBILLING_API_SECRET=${CANARY}\nBILLING_REGION=eu # one of eu, us\nSTORE_URL=\nNODE_ENV=production\n# SHOP_TIMEOUT=30s\n`,
  )
  const { exitCode, stdout } = await run(['init'])
  expect(exitCode).toBe(0)
  expect(stdout).toContain('Wrote platform.config.ts from .env.example.')
  expect(stdout).toContain('BILLING_API_SECRET: secret')
  expect(stdout).toContain('BILLING_API_KEY and BILLING_API_SECRET: set together')
  expect(stdout).toContain('Left out, as the preset has them: STORE_URL.')
  expect(stdout).toContain('NODE_ENV')
  const text = await readFile(path.join(folder, 'platform.config.ts'), 'utf8')
  expect(text + stdout).not.toContain(CANARY)
  expect(text).toContain(
    `SHOP_URL: { kind: 'url', summary: 'Web address of the shop.', example: 'https://shop.example' }`,
  )
  expect(await run(['preflight', '--strict'])).toMatchObject({ exitCode: 0 })
  expect(
    await command(['preflight'], { cwd: folder, env: { BILLING_API_KEY: 'one-key-of-two' } }),
  ).toMatchObject({ exitCode: 1 })
})

test.each(['.env', 'examples/.env'])(
  'init from an env file in use (%s) takes over no value, whatever its name',
  async (file) => {
    const values = [`DB_PWD=${CANARY}`, `HOOK=https://hooks.example/${CANARY}`, `# ADMIN_PIN=48291377`]
    await mkdir(path.join(folder, 'examples'), { recursive: true })
    await write(file, `${values.join('\n')}\n# @sensitive=false\nLOGIN=ada:${CANARY}\n`)
    const { exitCode, stdout } = await run(['init', '--from', file])
    expect(exitCode).toBe(0)
    expect(stdout).toContain(`Wrote platform.config.ts from ${file}, without its values.`)
    expect(stdout).toContain('HOOK: url')
    const text = await readFile(path.join(folder, 'platform.config.ts'), 'utf8')
    expect(text).toContain('HOOK')
    expect(text + stdout).not.toMatch(new RegExp(`${CANARY}|48291377`))
  },
)

test('init without an example writes one to start from, which passes', async () => {
  expect((await run(['init'])).stdout).toContain('without a group')
  expect(await run(['preflight', '--strict'])).toMatchObject({ exitCode: 0 })
  expect(await run(['init', '--from', 'nowhere'])).toMatchObject({ exitCode: 2 })
})

test('init --course begins a course in a language, whose mails pass, and overwrites no lesson', async () => {
  const begun = await run(['init', '--course', 'first-steps', '--language', 'de'])
  expect(begun).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('courses/first-steps/1-') })
  expect(await run(['email', 'lint', '--strict'])).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/✔ first-steps-1-.*\n[\s\S]*\n\n✔ passed/),
  })
  await rm(path.join(folder, 'platform.config.ts'))
  await writeFile(path.join(folder, 'courses/first-steps/1-welcome.md'), 'mine')
  expect(await run(['init', '--course', 'first-steps'])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('there is a folder ./courses/first-steps already'),
  })
  expect(await readFile(path.join(folder, 'courses/first-steps/1-welcome.md'), 'utf8')).toBe('mine')
  expect(existsSync(path.join(folder, 'platform.config.ts'))).toBe(false)
})

test('the demo runs the course of a definition, on the days of its cadence, and where a port is taken on the next', async () => {
  // More than the default course has.
  for (const lesson of [1, 2, 3, 4, 5, 6, 7, 8])
    await write(`${lesson}-clay.md`, `---\nsubject: Clay ${lesson}\n---\n\nA kiln is an oven.`)
  const { port } = new URL(await serve(() => {}))
  const courses = { firing: { lessons: '.', at: '09:00', on: ['mon'], spacing: '2w' } }
  const services = { web: { port: Number(port) } }
  await write('platform.config.json', JSON.stringify({ preset: 'base', services, courses }))
  const { exitCode, stdout, stderr } = await run([
    'demo',
    '--exit',
    '--day',
    '0.1',
    '--address',
    'a@b.example',
  ])
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' })
  expect(stderr).toMatch(new RegExp(`port ${port} is taken: web listens on (?!${port})`))
  expect(stderr).toContain('subscribed a@b.example;')
  expect(stderr).toMatch(/eight lessons in \d+ s, each sent once[\s\S]*\nstopped; nothing left behind$/)
  const days = [...stderr.matchAll(/lesson \d of 8, day (\d+) /g)].map(([, day]) => Number(day))
  const [first = 0] = days
  expect(first).toBeLessThanOrEqual(8)
  expect(days).toEqual(Array.from({ length: 8 }, (_, at) => first + at * 14))
})

test('the demo of a platform without a course runs without one', async () => {
  await write('platform.config.json', JSON.stringify({ preset: 'base' }))
  const { exitCode, stderr } = await run(['demo', '--exit', '--day', '0.1'])
  expect({ exitCode, stderr }).toEqual({
    exitCode: 0,
    stderr: expect.stringMatching(/there are no lessons[\s\S]*\nstopped; nothing left behind$/),
  })
})

test.each([
  [['--course', 'First'], '"First" cannot be the name of a course. Name it like first-firing.'],
  [['--course', '__proto__'], '"__proto__" cannot be the name of a course. Name it like first-firing.'],
  [['--language', 'not a tag'], `"not a tag" is not a language tag. Write it as language: 'de'.`],
])('init %j is exit 2 and writes nothing', async (options, sentence) => {
  expect(await run(['init', ...options])).toMatchObject({ exitCode: 2, stderr: `platformctl: ${sentence}` })
  expect(await readdir(folder)).toEqual([])
})

test.each([
  [
    ['--config', 'a', 'env', '--no-config', 'list'],
    { file: undefined, ignored: true, rest: ['env', 'list'] },
  ],
  [['--no-config', 'env', '--config=b'], { file: 'b', ignored: false, rest: ['env'] }],
  [
    ['beat', '--', '--config', 'a'],
    { file: undefined, ignored: false, rest: ['beat', '--', '--config', 'a'] },
  ],
  [['env', '--config'], { file: undefined, ignored: false, rest: ['env', '--config'] }],
])('the words of the definition are taken out of %j, wherever they are', (words, taken) => {
  expect(takeConfigWords(words)).toEqual(taken)
})
