import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { compileTemplate } from '../../src/core/mail/compile/compile.ts'
import type { MailBuild } from '../../src/core/mail/folder-mails.ts'
import { hasProgram } from '../support/programs.ts'
import { buildImage } from './image.ts'
import { type Installed, installPacked } from './install.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
let installed: Installed

beforeAll(async () => {
  installed = await installPacked()
}, 180_000)
afterAll(() => installed?.remove())

const run = (args: string[], options: { env?: Record<string, string>; timeout?: number } = {}) =>
  execa(process.execPath, [installed.bin, ...args], { cwd: installed.folder, reject: false, ...options })

/** For programs of dev dependencies. */
const tool = { cwd: root, preferLocal: true, localDir: root, reject: false } as const

const EVERY_COMPONENT = `---
subject: Your kiln
preheader: A mail
slots:
  bookingUrl: { type: url, sample: https://www.example.com/ }
action: { label: Open, url: "{{bookingUrl}}" }
because: You booked a kiln.
---
<mj-text>Friday</mj-text>
<mj-table><tr><td>1,240 °C</td></tr></mj-table>
<mj-divider border-color="#999999"></mj-divider>
<mj-spacer height="20px"></mj-spacer>
<mj-button href="{{bookingUrl}}">Open</mj-button>
<mj-navbar><mj-navbar-link href="{{bookingUrl}}">Kilns</mj-navbar-link></mj-navbar>
<mj-raw><p>As it is</p></mj-raw>
`

/** Every file that may be in the package; what matches none is a stray. */
const CONTENTS = [
  /^(?:CHANGELOG|README|SECURITY)\.md$|^LICENSE$|^package\.json$/,
  /^bin\/platformctl(?:-windows)?\.js$/,
  /^man\/platformctl\.1$/,
  /^dist\/(?:cli\/main|index|config|env|reporting|browser)\.js$/,
  /^dist\/(?:insights\.(?:js|css)|(?:lesson|status)\.js)$/,
  /^dist\/chunks\/[\w.-]+\.js$/,
  /^dist\/types\/[\w/-]+\.d\.ts$/,
  /^dist\/THIRD-PARTY-NOTICES\.txt$/,
  /^dist\/sbom\.cdx\.json$/,
  /^templates\/(?:base\/(?:de\/)?)?[\w-]+\.(?:md|mjml)$/,
  /^docs\/(?:guides|reference)\/[\w.-]+\.md$|^docs\/why\/(?:comparison|concepts)\.md$|^docs\/reference\/schemas\/[\w-]+\.schema\.json$/,
  /^docs\/images\/concepts\.svg$|^docs\/images\/live\.png$/,
  /^examples\//,
  /^runbooks\/(?:[\w-]+\.(?:md|sql)|alerts\.yaml|dashboard\.json)$/,
  /^deploy\/(?:Dockerfile(?:\.dockerignore)?|compose(?:\.(?:secrets|witness))?\.yaml|(?:systemd|kubernetes|ci)\/[\w-]+\.(?:service|timer|ya?ml)|proxy\/(?:nginx\.conf|Caddyfile)|offsite\/platformctl-offsite(?:\.service|\.timer)?)$/,
]

test('the tarball holds the built package and nothing of its making, and stays small', () => {
  expect(installed.files.filter((file) => !CONTENTS.some((known) => known.test(file)))).toEqual([])
  for (const known of CONTENTS)
    expect(
      installed.files.some((file) => known.test(file)),
      String(known),
    ).toBe(true)
  expect(installed.bytes.packed).toBeLessThan(2_500_000)
  expect(installed.bytes.unpacked).toBeLessThan(10_000_000)
})

test('it lists what is installed with it and what is bundled, in CycloneDX', async () => {
  const file = path.join(installed.folder, 'node_modules/platformctl/dist/sbom.cdx.json')
  const list = JSON.parse(await readFile(file, 'utf8')) as {
    bomFormat: string
    components: { name: string; version: string }[]
  }
  expect(list.bomFormat).toBe('CycloneDX')
  const names = list.components.map(({ name }) => name)
  for (const name of Object.keys(packageJson.dependencies)) expect(names).toContain(name)
  for (const name of ['mjml-core', 'zod', 'hono']) expect(names).toContain(name)
  expect(names).not.toContain('vitest')
})

test('an installation is small: at most 60 packages and 45 MB', async () => {
  const modules = path.join(installed.folder, 'node_modules')
  const files = (await readdir(modules, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.join(parentPath, name))
    // Added by this test, for its types.
    .filter((file) => !/node_modules.(?:@types.node|undici-types)./.test(file))
  const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size))
  const packages = files.filter((file) =>
    /node_modules[\\/](?:@[^\\/]+[\\/])?[^@\\/][^\\/]*[\\/]package\.json$/.test(file),
  )
  expect({ packages: packages.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }).toEqual({
    packages: expect.toSatisfy((count: number) => count <= 60),
    bytes: expect.toSatisfy((bytes: number) => bytes <= 45e6),
  })
})

test('the bundled compiler writes what MJML itself writes', async () => {
  const layout = await readFile(path.join(root, 'templates/layout.mjml'), 'utf8')
  const file = 'kiln-booked.mjml'
  const mails = path.join(installed.folder, 'mails')
  await mkdir(mails)
  await writeFile(path.join(mails, 'layout.mjml'), layout)
  await writeFile(path.join(mails, file), EVERY_COMPONENT)
  const config = path.join(installed.folder, 'platform.config.json')
  await writeFile(config, '{ "preset": "base", "name": "Kiln School", "mails": "./mails" }')
  onTestFinished(() => rm(config))
  expect(await run(['email', 'build'])).toMatchObject({ exitCode: 0, stderr: '' })
  const built = JSON.parse(await readFile(path.join(mails, 'compiled/mails.json'), 'utf8')) as MailBuild
  expect(built.mails['kiln-booked']).toEqual(await compileTemplate({ file, source: EVERY_COMPONENT, layout }))
})

test('the licences of what is bundled come with it', async () => {
  const text = await readFile(
    path.join(installed.folder, 'node_modules/platformctl/dist/THIRD-PARTY-NOTICES.txt'),
    'utf8',
  )
  for (const name of ['commander', 'zod', 'chalk']) expect(text).toMatch(new RegExp(`^${name} \\d`, 'm'))
  expect(text).toContain('Permission is hereby granted')
})

test('publint and attw find nothing to say about its exports and types', async () => {
  const lint = await execa('publint', ['run', installed.tarball, '--strict'], tool)
  expect(lint.stdout).toContain('All good!')
  expect(lint.exitCode).toBe(0)
  // There is no CommonJS build, and no TypeScript of before 2022 that could resolve `exports`: both say so by design.
  const types = await execa('attw', [installed.tarball, '--profile', 'esm-only', '--format', 'json'], tool)
  const { analysis } = JSON.parse(types.stdout) as { analysis: { problems: { resolutionKind: string }[] } }
  const modern = analysis.problems.filter(({ resolutionKind }) =>
    /^(?:node16-esm|bundler)$/.test(resolutionKind),
  )
  expect(modern).toEqual([])
})

test('the changelog has a section for this version', async () => {
  const text = await readFile(path.join(installed.folder, 'node_modules/platformctl/CHANGELOG.md'), 'utf8')
  expect(text).toContain(`\n## ${packageJson.version} `)
})

test('--version prints the version of the package', async () => {
  const result = await run(['--version'])
  expect(result).toMatchObject({ exitCode: 0, stdout: packageJson.version, stderr: '' })
})

test('preflight passes an empty environment file and fails a half-configured one', async () => {
  await writeFile(path.join(installed.folder, 'empty.env'), '')
  await writeFile(
    path.join(installed.folder, 'half.env'),
    'SHAREDSTORE_REST_URL=https://limits.example.com\n',
  )
  expect(await run(['preflight', '--env-file', 'empty.env'])).toMatchObject({ exitCode: 0 })
  const half = await run(['preflight', '--env-file', 'half.env'])
  expect(half.exitCode).toBe(1)
  expect(half.stdout).toContain('SHAREDSTORE_REST_TOKEN')
})

test('the demo runs the seven-day course and leaves nothing behind', async () => {
  const before = await demoFolders()
  const demo = await run(['demo', '--exit', '--day', '0.05'], { timeout: 60_000 })
  expect(demo.stderr).toMatch(/lesson 7 of 7/)
  expect(demo.exitCode).toBe(0)
  expect(await demoFolders()).toEqual(before)
})

const demoFolders = async () =>
  (await readdir(tmpdir())).filter((name) => name.startsWith('platformctl-demo-'))

test('imports as a library, and serves health without listening', async () => {
  await writeFile(
    path.join(installed.folder, 'use.js'),
    `import { openPlatform } from 'platformctl'
import { validateAll, readEnv } from 'platformctl/env'
const platform = openPlatform({ env: {} })
const response = await platform.web.fetch(new Request('http://web.example/api/health'))
console.log(JSON.stringify({ status: response.status, body: await response.json(), ok: validateAll({}).ok, read: [...readEnv('A=1').values] }))
await platform.close()
`,
  )
  const result = await execa(process.execPath, ['use.js'], { cwd: installed.folder })
  expect(JSON.parse(result.stdout)).toMatchObject({
    status: 200,
    body: { service: 'web' },
    ok: true,
    read: [['A', '1']],
  })
})

test('a DSN without the SDK, which is an optional peer, is a visible degradation and no fault', async () => {
  const env = { NEXT_PUBLIC_ERRORTRACK_DSN: 'https://key@errors.example.com/1' }
  const preflight = await run(['preflight'], { env })
  expect(preflight.exitCode).toBe(0)
  expect(preflight.stdout).toMatch(/warning package-missing[\s\S]*npm install @sentry\/node/)
  await writeFile(
    path.join(installed.folder, 'report.js'),
    `import { openPlatform } from 'platformctl'
import { reportError, startReporting } from 'platformctl/reporting'
const { outcome } = await startReporting({ dsn: process.env.NEXT_PUBLIC_ERRORTRACK_DSN })
reportError(new Error('x'))
const platform = openPlatform({ env: process.env })
const { probes } = await platform.health('web')
console.log(JSON.stringify({ outcome, errortrack: probes.errortrack }))
await platform.close()
`,
  )
  const program = await execa(process.execPath, ['report.js'], { cwd: installed.folder, env })
  expect(JSON.parse(program.stdout)).toEqual({
    outcome: 'missing',
    errortrack: { state: 'degraded', checked: false, reason: 'its SDK is not installed' },
  })
  expect(program.stderr).toMatch(/RuntimeWarning: .*@sentry\/node is not installed/)

  const ports = ['--web-port', '0', '--api-port', '0', '--agent-port', '0']
  const daemon = execa(process.execPath, [installed.bin, 'daemon', ...ports], {
    cwd: installed.folder,
    env,
    reject: false,
    timeout: 30_000,
  })
  for await (const line of daemon.iterable()) if (line.includes('"event":"listening"')) daemon.kill('SIGTERM')
  const { exitCode, stdout } = await daemon
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/"level":"warn".*"event":"errortrack_missing".*npm install @sentry\/node/)
})

test('the browser part and its types are in the package, without a package to install for it', async () => {
  await writeFile(
    path.join(installed.folder, 'page.js'),
    `import * as browser from 'platformctl/browser'
browser.start({ endpoint: '/api/analytics', dsn: 'https://key@errors.example.com/1' })
browser.track('lesson.viewed', { lesson: 3 })
browser.reportError(new Error('x'))
console.log(Object.keys(browser).sort().join(' '))
`,
  )
  const program = await execa(process.execPath, ['page.js'], { cwd: installed.folder })
  // Where there is no browser, as when a page is rendered on a server, everything is a no-op.
  expect(program).toMatchObject({
    stdout: 'optOut reportError reportMessage setUserContext start track withErrorReporting',
    stderr: '',
  })
})

test('its types hold a consumer to the documented shapes', async () => {
  await writeFile(
    path.join(installed.folder, 'right.ts'),
    `import { openPlatform } from 'platformctl'
import { validateWeb } from 'platformctl/env'
const platform = openPlatform({ env: process.env })
const answer: Promise<Response> = platform.api.fetch(new Request('http://api.example/'))
const ok: boolean = validateWeb({}).ok
const sent = await platform.sendEmail({ template: 'welcome', to: 'a@example.com', slots: { startUrl: 'https://www.example.com/' }, about: 'user.1' })
if (sent.sent) { const id: string = sent.id; void id } else { const reason: string = sent.reason; void reason }
void answer; void ok
const kept = await platform.mail.send('welcome', { to: 'a@example.com', slots: { startUrl: 'https://www.example.com/' }, language: 'de', durable: true, key: 'user.1', attachments: [{ name: 'a.txt', type: 'text/plain', content: 'a' }] })
void kept
${REPORTING}`,
  )
  await writeFile(
    path.join(installed.folder, 'wrong.ts'),
    `import { openPlatform } from 'platformctl'\nopenPlatform({ env: 3 })\nimport { track } from 'platformctl/browser'\ntrack('lesson.deleted')\nimport { start } from 'platformctl/browser'\nstart({ events: [{ name: 'kiln.booked' }] }).track('kiln.broken')\n`,
  )
  expect((await tsc('right.ts')).stdout).toBe('')
  expect((await tsc('wrong.ts')).stdout).toMatch(
    /wrong\.ts\(2,\d+\): error TS[\s\S]*wrong\.ts\(4,\d+\): error TS[\s\S]*wrong\.ts\(6,\d+\): error TS/,
  )
})

test('a TypeScript definition loads from the installed package, and the compiler knows its names', async () => {
  const write = (file: string, text: string) => writeFile(path.join(installed.folder, file), text)
  const definition = (rule: string) => `import { definePlatform } from 'platformctl/config'
export default definePlatform({
  preset: 'base',
  name: 'Kiln School',
  services: { web: {} },
  groups: {
    kiln: {
      unlocks: 'kiln bookings',
      absent: 'no bookings',
      variables: { KILN_API_KEY: { kind: 'secret' }, KILN_API_SECRET: { kind: 'secret' } },
      rules: [{ allOrNone: ['KILN_API_KEY', '${rule}'] }],
    },
  },
})
`
  await write('kiln.config.ts', definition('KILN_API_SECRET'))
  const half = await run(['preflight', '--config', 'kiln.config.ts'], {
    env: { KILN_API_KEY: 'one-of-two-keys' },
  })
  expect(half.exitCode).toBe(1)
  expect(half.stdout).toContain('KILN_API_SECRET')
  await write(
    'kiln-use.ts',
    `import { openPlatform } from 'platformctl'
import { readPlatformEnv } from 'platformctl/config'
import platform from './kiln.config.ts'
const { kiln, payments } = readPlatformEnv(platform, { KILN_API_KEY: 'a', KILN_API_SECRET: 'b' })
const secret: string = kiln ? kiln.KILN_API_SECRET.reveal() : ''
const opened = openPlatform({ env: {}, platform })
const { status } = await opened.web.fetch(new Request('http://web.example/api/health'))
console.log(JSON.stringify({ secret, payments: payments === undefined, status }))
await opened.close()
`,
  )
  const used = await execa(process.execPath, ['kiln-use.ts'], { cwd: installed.folder })
  expect(JSON.parse(used.stdout)).toEqual({ secret: 'b', payments: true, status: 200 })
  expect((await tsc('kiln-use.ts')).stdout).toBe('')
  await write('kiln-wrong.ts', definition('KILN_API_SECERT'))
  expect((await tsc('kiln-wrong.ts')).stdout).toMatch(
    /kiln-wrong\.ts\(11,\d+\)[\s\S]*Did you mean '"KILN_API_SECRET"'/,
  )
})

/** The subpaths of reporting and of the browser, used as they are meant to be. */
const REPORTING = `
import { registerReporter, reportError, startReporting, withErrorReporting } from 'platformctl/reporting'
import { start, track } from 'platformctl/browser'
const outcome: 'on' | 'off' | 'missing' | 'refused' = (await startReporting({ dsn: process.env.NEXT_PUBLIC_ERRORTRACK_DSN, build: 'x' })).outcome
registerReporter({ report: (report) => { if (report.kind === 'user') { const id: string | undefined = report.user?.id; void id } } })
const doubled: number = withErrorReporting((value: number) => value * 2)(21)
reportError(new Error('x'), { lesson: 3 })
start({ endpoint: process.env.NEXT_PUBLIC_ANALYTICS_ENDPOINT })
track('lesson.viewed', { lesson: 3 })
start({ events: [{ name: 'kiln.booked', properties: { cones: 'number' } }] }).track('kiln.booked', { cones: 6 })
void outcome; void doubled
`

/** Checks a file as a consumer's compiler would. */
const tsc = (file: string) =>
  execa(
    process.execPath,
    [
      typescript(),
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2024',
      '--allowImportingTsExtensions',
      '--types',
      'node',
      file,
    ],
    {
      cwd: installed.folder,
      reject: false,
    },
  )

const typescript = () =>
  path.join(path.dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

test('rejects an older Node with one sentence, exit 2', async () => {
  // The same check that runs first in the bin, on the version an old Node would report.
  await writeFile(
    path.join(installed.folder, 'old.cjs'),
    `Object.defineProperty(process.versions, 'node', { value: '20.20.2' })`,
  )
  const result = await execa(process.execPath, ['--require', './old.cjs', installed.bin, 'preflight'], {
    cwd: installed.folder,
    reject: false,
  })
  expect(result.exitCode).toBe(2)
  expect(result.stderr).toMatch(/^platformctl needs Node 22\.18 or newer and this is 20\.20\.2: .*\.$/)
})

test.skipIf(!hasProgram(['unshare', '--mount', 'setpriv', '--version'], 'util-linux, and be root'))(
  'the image of a definition serves it in each role as another user on a read-only file system, and its health check says so',
  async () => {
    const { root, data, env, roleOf, entry } = await buildImage({
      tarball: installed.tarball,
      run: (args, cwd) => execa(process.execPath, ['--', installed.bin, ...args], { cwd }),
    })
    // A network of its own: another program may listen on these ports here.
    const network = execa('unshare', ['--net', 'sh', '-c', 'ip link set lo up; echo up; exec sleep 600'])
    onTestFinished(async () => {
      network.kill()
      await network.catch(() => {})
    })
    await once(network.stdout, 'data')
    /** Runs a command as user 1000 where nothing but the data folder can be written to. */
    const contained = (words: readonly string[]) =>
      execa(
        'nsenter',
        [
          ...['--target', String(network.pid), '--net', 'unshare', '--mount', 'sh', '-ec'],
          'mount --bind "$0" "$0"; mount -o remount,bind,ro /; cd "$1"; shift; exec setpriv --reuid=1000 --regid=1000 --clear-groups --no-new-privs --inh-caps=-all "$@"',
          data,
          root,
          ...words,
        ],
        { env, extendEnv: false, reject: false },
      )
    for (const role of ['web', 'shop']) {
      const daemon = contained([...entry, ...roleOf(role)(/^CMD (\[.*\])$/m)])
      onTestFinished(async () => {
        daemon.kill('SIGTERM')
        await daemon
      })
      let healthy = false
      for (let tries = 0; tries < 50 && !healthy; tries += 1) {
        healthy = (await contained(roleOf(role)(/^HEALTHCHECK[\s\S]*?CMD (\[.*\])$/m))).exitCode === 0
        if (!healthy) await pause(200)
      }
      expect({ role, healthy }).toEqual({ role, healthy: true })
    }
    const page = async (name: string) =>
      (await contained(['/usr/bin/curl', '-s', `http://127.0.0.1:3000${name}`])).stdout
    expect(await page('/')).toContain('Töpferschule Lehmgrube')
    expect(await page('/lessons/1')).toContain('Der richtige Ton')
    // As `docker compose exec web` runs it.
    const listed = await contained(['platformctl', 'course', 'list', '--data', data])
    expect(listed.stdout).toContain('erster-brand')
  },
  180_000,
)
