import { chmod, chown, copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { execa } from 'execa'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { choosePlatform, takeConfigWords } from '../../src/cli/choose-platform.ts'
import { leavePointer, writeRecord } from '../../src/core/daemon-record.ts'
import { bin, type Daemon, platformctl, startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { command } from '../support/in-process.ts'
import { alertWebhook } from '../support/servers.ts'

// Each test starts many processes.
vi.setConfig({ testTimeout: 60_000 })
afterAll(() => vi.resetConfig())

const DEFINITION = {
  preset: 'learning',
  name: 'Kiln School',
  groups: {
    kiln: {
      services: ['web'],
      unlocks: 'kiln bookings',
      absent: 'bookings are shown as unavailable',
      variables: { KILN_API_KEY: { kind: 'secret' } },
    },
  },
}
/** With a lesson, which preflight compiles. */
const TAUGHT = { ...DEFINITION, courses: { firing: { lessons: './firing', every: '2d' } } }

/** A folder with a definition and an env file, an empty one to run commands in, and one for pointers. */
async function school(definition: object = DEFINITION) {
  const root = await emptyFolder()
  const at = (name: string) => path.join(root, name)
  for (const name of ['srv/firing', 'elsewhere', 'state']) await mkdir(at(name), { recursive: true })
  const file = at('srv/platform.config.json')
  await writeFile(file, JSON.stringify(definition))
  await writeFile(at('srv/firing/1-clay.md'), '---\nsubject: Clay\n---\n\nWedge it.')
  await writeFile(
    at('srv/kiln.env'),
    'KILN_API_KEY=a-long-key-of-the-kiln\nEMAIL_DISPATCH_SECRET=a-long-secret-of-the-school-4711\nOTHER_PROGRAM=1\n',
  )
  const env = { XDG_STATE_HOME: at('state') }
  return {
    at,
    file,
    run: (args: readonly string[], { cwd = at('elsewhere'), more = {} } = {}) =>
      command(args, { cwd, env: { ...env, ...more } }),
    /** In a process of its own, for what it logs and how it ends. */
    start: (args: readonly string[], cwd = at('elsewhere')) => started(args, cwd, env),
    here: (args: readonly string[], cwd = at('elsewhere')) => inThisProcess(args, cwd, env),
  }
}

async function inThisProcess(args: readonly string[], cwd: string, env: Record<string, string>) {
  const end = new AbortController()
  const words = 'daemon --no-schedule --web-port 0 --api-port 0 --agent-port 0 --grace 0'.split(' ')
  const ended = command([...words, ...args], { cwd, env, signal: end.signal })
  const stop = async () => {
    end.abort()
    expect(await ended).toMatchObject({ exitCode: 0 })
  }
  onTestFinished(stop)
  const record = path.resolve(cwd, args.at(args.indexOf('--data') + 1) ?? '.platformctl', 'daemon.json')
  const url = async () => JSON.parse(await readFile(record, 'utf8').catch(() => '{}')).urls?.web
  await expect.poll(url, { interval: 5 }).toBeTypeOf('string')
  return { stop, url: String(await url()) }
}

async function started(args: readonly string[], cwd: string, env: Record<string, string>): Promise<Daemon> {
  const daemon = await startDaemon([...args, '--no-schedule'], { cwd, env })
  let exit: Promise<number | undefined> | undefined
  const stop = (signal?: 'SIGTERM' | 'SIGKILL') => (exit ??= daemon.stop(signal))
  onTestFinished(async () => void (await stop()))
  return { ...daemon, stop }
}

const named = (file: string) => `Kiln School, defined by ${file} (fingerprint `

test('preflight names the definition that it found in its folder or beside the env file, or says that there is none', async () => {
  const { at, file, run } = await school()
  const own = await run(['preflight'], { cwd: at('srv') })
  const beside = await run(['preflight', '--env-file', '../srv/kiln.env', '--strict'])
  // Whichever of several it is.
  await writeFile(at('elsewhere/more.env'), '')
  const files = ['../srv/kiln.env', 'more.env'].map((one) => ['--env-file', one])
  const [first, last] = [files, files.toReversed()].map((all) => ['preflight', ...all.flat()])
  for (const { exitCode, stdout } of [own, beside, await run(first ?? []), await run(last ?? [])]) {
    expect(stdout).toContain(named(file))
    expect(exitCode).toBe(0)
  }
  const none = await run(['preflight'])
  expect(none.stdout).toContain(`no definition found in ${at('elsewhere')}: running the default platform`)
  for (const format of ['github', 'sarif', 'junit'])
    expect((await run(['preflight', '--format', format])).stderr).toContain('no definition found in ')
  expect(JSON.parse((await run(['preflight', '--format', 'json'])).stdout)).toMatchObject({
    platform: { name: 'platformctl', definition: null, fingerprint: null },
  })
  expect(
    JSON.parse((await run(['preflight', '--format=json', `-e${at('srv/kiln.env')}`])).stdout),
  ).toMatchObject({
    platform: { name: 'Kiln School', definition: file, fingerprint: expect.stringMatching(/^[0-9a-f]{12}$/) },
  })
})

test('commands that take env files as arguments look for the definition beside them too', async () => {
  const { at, file, run } = await school()
  const one = at('srv/kiln.env')
  expect((await run(['env', 'check', one])).stdout).toContain(named(file))
  expect((await run(['env', 'diff', '--format', 'text', one, one])).exitCode).toBe(0)
  await writeFile(at('elsewhere/more.env'), '')
  for (const [first, second] of [[one, 'more.env'] as const, ['more.env', one] as const])
    expect((await run(['env', 'diff', first, second])).stdout).toMatch(/^kiln {2}\w+ → \w+$/m)
  expect((await run(['env', 'check', one, '--no-config'])).stdout).not.toContain(named(file))
})

test('an env file with names that the default platform does not know is a warning, unless --no-config asks for it', async () => {
  const { at, run } = await school()
  // The second variable is known, although another service reads it.
  await writeFile(at('elsewhere/kiln.env'), 'KILN_API_KEY=a-long-key-of-the-kiln\nCOURSE_INDEX_PATH=/index\n')
  const loose = await run(['preflight', '--env-file', 'kiln.env', '--service', 'web'])
  expect(loose.stdout).toMatch(
    /▲ warning no-definition[\s\S]*1 name in the files is unknown to the default platform/,
  )
  expect(loose.exitCode).toBe(0)
  expect((await run(['preflight', '--env-file', 'kiln.env', '--strict'])).exitCode).toBe(1)
  expect((await run(['preflight', '--env-file', 'kiln.env', '--strict', '--no-config'])).exitCode).toBe(0)
  expect((await run(['env', 'explain', 'no-definition'])).exitCode).toBe(0)
})

test('a daemon says first which platform it runs, whatever is logged, warns of unknown names, and keeps where everything is but no value', async () => {
  const { at, file, start } = await school()
  const kiln = await start(['--env-file', at('srv/kiln.env'), '--data', at('data')])
  expect(kiln.lines[0]).toMatchObject({
    event: 'platform',
    message: expect.stringContaining(named(file)),
    platform: 'Kiln School',
    definition: file,
  })
  // With a definition, names of other programs are no warning.
  expect(kiln.lines).not.toContainEqual(expect.objectContaining({ id: 'names-not-read' }))
  const record = await readFile(at('data/daemon.json'), 'utf8')
  expect(JSON.parse(record)).toMatchObject({
    platform: { name: 'Kiln School', definition: file },
    envFiles: [at('srv/kiln.env')],
  })
  const [pointer = ''] = await readdir(at('state/platformctl/daemons'))
  const text = await readFile(at(`state/platformctl/daemons/${pointer}`), 'utf8')
  expect(JSON.parse(text)).toEqual({ version: 1, pid: kiln.pid, dataFolder: at('data') })
  expect(record + text).not.toContain('a-long-key')
  await writeFile(at('elsewhere/quiet.env'), 'LOG_LEVEL=warn\nKILN_API_KEY=a-long-key-of-the-kiln\n')
  const none = await start(['--env-file', 'quiet.env', '--data', at('other')])
  expect(none.lines[0]).toMatchObject({
    event: 'platform',
    message: `no definition found in ${at('elsewhere')}: running the default platform`,
  })
  expect(none.lines).toContainEqual(expect.objectContaining({ id: 'no-definition', level: 'warn' }))
})

test('a store of another platform is refused with both names until it is adopted, and its mail is paused without a definition', async () => {
  const { at, file, run, here } = await school(TAUGHT)
  const data = ['--data', at('data')]
  await (await here(['--config', file, ...data])).stop()
  await writeFile(at('srv/firing/1-clay.md'), '---\nsubject: Clay\n---\n\nWedge it again.')
  expect((await run(['course', 'status', '--config', file, ...data])).exitCode).toBe(0)
  await writeFile(file, 'export default {')
  const paused = (await run(['mail', 'pause', '--reason', 'a wrong price', '--no-config', ...data])).stdout
  expect(paused).toContain('a wrong price')
  expect(await run(['mail', 'resume', '--no-config', ...data])).toMatchObject({ exitCode: 0 })
  await writeFile(file, JSON.stringify({ ...DEFINITION, name: 'Glaze School' }))
  for (const command of ['daemon', 'course status'])
    expect(await run([...command.split(' '), '--config', file, ...data])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(
        /belongs to the platform "Kiln School", and this is "Glaze School".*--adopt/,
      ),
    })
  await (await here(['--config', file, '--adopt', ...data])).stop()
  expect((await run(['course', 'status', '--config', file, ...data])).exitCode).toBe(0)
  expect(await run(['course', 'status', '--no-config', ...data])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('belongs to the platform "Glaze School"'),
  })
  // Only --no-config says that the definition does not matter.
  const more = { STORE_URL: `sqlite:${at('data/platform.sqlite')}` }
  expect(await run(['mail', 'pause', '--reason', 'a wrong price'], { more })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('belongs to the platform "Glaze School"'),
  })
})

test('a command that was started in the wrong folder does not claim a store that has no record', async () => {
  const { at, file, run } = await school()
  const data = ['--data', at('data')]
  await run(['db', 'migrate', ...data])
  for (const platform of [['--no-config'], ['--config', file]])
    expect((await run(['course', 'status', ...platform, ...data])).exitCode).toBe(0)
})

test('the fingerprint follows the definition and its lessons, and not the folder', async () => {
  const fingerprint = async ({ at, run }: Awaited<ReturnType<typeof school>>) => {
    const { stdout } = await run(['env', 'check', 'kiln.env'], { cwd: at('srv') })
    return /\(fingerprint (\w{12})\)/.exec(stdout)?.[1] ?? expect.fail(stdout)
  }
  const [one, same, other] = [await school(TAUGHT), await school(TAUGHT), await school()]
  const before = await fingerprint(one)
  expect(await fingerprint(same)).toBe(before)
  expect(await fingerprint(other)).not.toBe(before)
  await writeFile(one.at('srv/firing/1-clay.md'), '---\nsubject: Clay\n---\n\nWedge it again.')
  expect(await fingerprint(one)).not.toBe(before)
})

test('a command with the data folder uses the definition that its daemon had, running or not, and refuses one that is gone', async () => {
  const { at, file, run, here } = await school(TAUGHT)
  const data = ['--data', at('data')]
  const daemon = await here(['--config', file, ...data])
  expect((await run(['status', ...data])).stdout).toMatch(/^platform {3}Kiln School, defined by /m)
  const listed = await run(['course', 'list', ...data])
  expect(listed.stderr).toContain(named(file))
  expect(listed.stdout).toContain('firing')
  await daemon.stop()
  // The last of two names counts, as for the command itself.
  for (const words of [data, ['--data', at('none'), ...data]])
    expect((await run(['course', 'list', ...words])).stdout).toContain('firing')
  await rm(file)
  expect(await run(['course', 'list', ...data])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(
      /daemon\.json says that .*platform\.config\.json defines this platform.*--config/,
    ),
  })
})

test('a daemon whose definition is broken or gone alerts once, however often it is started, and ends no incident', async () => {
  const { at, file, here } = await school()
  const { url: hook, told } = await alertWebhook()
  await writeFile(at('srv/kiln.env'), `ALERT_WEBHOOK_URL=${hook}\n`)
  const words = ['--env-file', at('srv/kiln.env'), '--data', at('data')]
  const where = { cwd: at('elsewhere'), env: { XDG_STATE_HOME: at('state') } }
  const refused = async () => expect((await platformctl(['daemon', ...words], where)).exitCode).toBe(2)
  await writeFile(file, JSON.stringify({ ...DEFINITION, preset: 'lerning' }))
  await refused()
  await refused()
  expect(told).toEqual([
    expect.stringMatching(
      /^incident\.opened start_refused: .*platform\.config\.json has \d+ faults; the daemon refused to start$/,
    ),
  ])
  await writeFile(file, JSON.stringify(DEFINITION))
  await (await here(words)).stop()
  await rm(file)
  // Of a probe that only the definition knows.
  const store = new Database(at('data/platform.sqlite'))
  const columns = '(id, cause, service, affected, opened_at, seen_at)'
  store
    .prepare(`INSERT INTO incident ${columns} VALUES ('o', 'oven', 'web', '[]', @at, @at)`)
    .run({ at: Date.now() - 200_000 })
  store.close()
  await refused()
  await refused()
  expect(told.slice(1)).toEqual(['incident.opened oven: null'])
  await rm(at('data'), { recursive: true })
  await platformctl(['daemon', '--config', file, ...words], { cwd: at('elsewhere') })
  expect(told[2]).toContain('platform.config.json: There is no such file. Check the path; the daemon refused')
})

test('a daemon refused for the file of a secret alerts once, names the file, and opens no other store', async () => {
  const cwd = await emptyFolder()
  const { url: hook, told } = await alertWebhook()
  const start = (env: Record<string, string>, service = 'web') =>
    command(['daemon', '--service', service, '--data', 'data'], {
      cwd,
      env: { ALERT_WEBHOOK_URL: hook, XDG_STATE_HOME: cwd, ...env },
    })
  const mailer = { MAILER_API_KEY_FILE: '/run/absent/mailer' }
  for (let n = 0; n < 2; n += 1) {
    const { exitCode, stderr } = await start(mailer)
    expect(exitCode).toBe(2)
    expect(stderr).toContain('/run/absent/mailer, which MAILER_API_KEY_FILE names, does not exist.')
  }
  expect(told).toEqual([
    expect.stringMatching(
      /^incident\.opened start_refused: \/run\/absent\/mailer, which MAILER_API_KEY_FILE names/,
    ),
  ])
  await rm(path.join(cwd, 'data'), { recursive: true })
  expect((await start({ STORE_URL_FILE: '/run/absent/store' })).exitCode).toBe(2)
  expect(told[1]).toMatch(/^incident\.opened store: \/run\/absent\/store, which STORE_URL_FILE names/)
  expect(await readdir(path.join(cwd, 'data'))).toEqual(['alerts.json', 'daemon.json'])
})

test('without options a command acts on the one daemon that runs here, and says so, also of an env file that is gone', async () => {
  const { at, file, run, here } = await school()
  const daemon = await here(['--env-file', at('srv/kiln.env'), '--data', at('data')])
  const options = `--config ${file} --env-file ${at('srv/kiln.env')} --data ${at('data')}`
  for (const command of ['preflight --strict', 'status', 'course list', 'env list']) {
    // A variable of white space is none.
    const { exitCode, stdout, stderr } = await run(command.split(' '), { more: { STORE_URL: ' ' } })
    expect(stderr).toContain(`platformctl: acting on the daemon that runs here: ${options}`)
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/Kiln School|quantum|kiln/)
  }
  const silent = async (args: readonly string[], where: Parameters<typeof run>[1] = {}) =>
    expect((await run(args, where)).stderr).not.toContain('acting on')
  // Where it listens, and not where another program may.
  expect((await run(['health'])).stdout).toContain(daemon.url)
  expect((await run(['dispatch'])).stdout).toContain('0 sent')
  // Also a service of another process with the same folder.
  const record = await readFile(at('data/daemon.json'), 'utf8')
  const { urls, ...one } = JSON.parse(record)
  const others = [
    { ...one, pid: process.pid, urls: { agent: 'http://127.0.0.1:1' } },
    // It crashed, and another program may listen there by now.
    { ...one, pid: 2 ** 30, urls: { api: 'http://127.0.0.1:2' } },
  ]
  await writeFile(at('data/daemon.json'), JSON.stringify({ ...one, urls: { web: urls.web }, others }))
  expect((await run(['health', '--service', 'agent'])).stdout).toContain('http://127.0.0.1:1')
  expect((await run(['health', '--service', 'api'])).stdout).not.toContain('http://127.0.0.1:2')
  const elsewhere = [{ ...one, pid: 1, host: 'c4.invalid', urls: { agent: 'http://0.0.0.0:1' } }]
  await writeFile(
    at('data/daemon.json'),
    JSON.stringify({ ...one, urls: { web: urls.web }, others: elsewhere }),
  )
  expect((await run(['health', '--service', 'agent'])).stdout).toContain('http://c4.invalid:1')
  await writeFile(at('data/daemon.json'), record)
  expect((await run(['course', 'status'], { cwd: at('srv') })).stderr).toContain(
    `a daemon runs here with --data ${at('data')}; name that`,
  )
  await silent(['preflight', '--no-config'])
  await silent(['preflight', '--config', file])
  await silent(['preflight', '--env-file', at('srv/kiln.env')])
  await silent(['preflight'], { more: { STORE_URL: `sqlite:${at('data/platform.sqlite')}` } })
  await silent(['course', 'list', '--data', at('data')])
  await silent(['preflight'], { cwd: at('srv') })
  // A folder that has a daemon of its own, running or not.
  await mkdir(at('own/.platformctl'), { recursive: true })
  await copyFile(at('data/daemon.json'), at('own/.platformctl/daemon.json'))
  await silent(['preflight'], { cwd: at('own') })
  await silent(['preflight', '--help'])
  await silent(['health', '--url', `web=${daemon.url}`])
  await silent(['health', `--url=web=${daemon.url}`])
  // As one that was a pipe.
  await rm(at('srv/kiln.env'))
  const { exitCode, stderr } = await run(['preflight'])
  expect(stderr).toContain(`not read: ${at('srv/kiln.env')}, which the daemon was started with.`)
  expect(exitCode).toBe(0)
  await daemon.stop()
  await silent(['preflight'])
  expect(await readdir(at('state/platformctl/daemons'))).toEqual([])
})

test('what belongs to the command behind -- says nothing to beat', async () => {
  const { at, run, here } = await school({ ...DEFINITION, heartbeats: { backup: { every: '1d' } } })
  // Also in the folder of its data.
  await here(['--env-file', at('srv/kiln.env'), '--data', '.platformctl'])
  for (const word of ['-h', '--url']) {
    const { exitCode, stderr } = await run(['beat', 'backup', '--', 'true', word, 'db.example.com'])
    expect(exitCode).toBe(0)
    expect(stderr).toContain('acting on the daemon that runs here')
    expect(stderr).not.toContain('not recorded')
  }
})

test('in the folder of a definition, or with --config alone, a command says that a daemon runs here with other settings', async () => {
  const { at, file, run, start, here } = await school()
  const words = ['--env-file', at('srv/kiln.env'), '--data', at('data')]
  const daemon = await here(words)
  const said = `platformctl: the settings are this shell’s alone, without an env file. A daemon runs here with others; to act on it, add ${words.join(' ')}`
  const lines = async (args: readonly string[], where: Parameters<typeof run>[1] = { cwd: at('srv') }) =>
    (await run(args, where)).stderr.split('\n').filter((line) => line.includes('this shell’s alone'))
  expect(await run(['preflight', '--strict'], { cwd: at('srv') })).toMatchObject({
    exitCode: 0,
    stderr: said,
  })
  expect(await lines(['course', 'status'])).toEqual([said])
  expect(await lines(['env', 'list', '--config', file], {})).toEqual([said])
  for (const named of [words.slice(0, 2), words.slice(2), ['--help'], ['--no-config']])
    expect(await lines(['course', 'status', ...named])).toEqual([])
  expect(await lines(['env', 'check', at('srv/kiln.env')])).toEqual([])
  expect(await lines(['health', '--url', `web=${daemon.url}`])).toEqual([])
  expect(await lines(['preflight'], { cwd: at('srv'), more: { STORE_URL: 'sqlite:x' } })).toEqual([])
  const second = await start(['--data', at('second')])
  const [both = ''] = await lines(['preflight'])
  for (const one of [words.join(' '), `--data ${at('second')}`, ', or ']) expect(both).toContain(one)
  await daemon.stop()
  await second.stop()
  expect(await lines(['preflight'])).toEqual([])
  // Only what it was given in its own shell can be missing here, which no option would name.
  await here([], at('srv'))
  expect(await lines(['preflight'])).toEqual([])
})

test('of several daemons none is assumed, which fails a strict preflight for a platform of its own alone, and one that crashed does not count', async () => {
  const { at, run, start } = await school()
  const plain = [await start(['--data', at('data')])]
  // It has no definition, and what acts on it says so. Two processes on one folder are one daemon.
  const leave = leavePointer(at('state/platformctl/daemons'), at('data'))
  const one = await run(['preflight'])
  leave()
  expect([one.stdout, one.stderr].join()).toMatch(/no definition found[\s\S]*acting on the daemon/)
  plain.push(await start(['--data', at('second')]))
  const both = await run(['preflight', '--strict'])
  expect(both.stderr).toMatch(/several daemons run here \(.*\), so no command assumes one/)
  expect(both.stdout).toContain('0 errors, 0 warnings')
  expect(both.exitCode).toBe(0)
  await start(['--env-file', at('srv/kiln.env'), '--data', at('third')])
  const strict = await run(['preflight', '--strict'])
  expect(strict.stdout).toMatch(
    /no definition found[\s\S]*warning no-definition[\s\S]*several daemons run here/,
  )
  expect(strict.exitCode).toBe(1)
  for (const daemon of plain) await daemon.stop('SIGKILL')
  expect((await run(['preflight'])).stderr).toContain(`--data ${at('third')}`)
})

test.runIf(process.getuid?.() === 0)(
  'a daemon with a file that another user could have written is not used',
  async () => {
    const { at, file, run, start } = await school()
    const daemon = await start(['--env-file', at('srv/kiln.env'), '--data', at('data')])
    const [pointer = ''] = await readdir(at('state/platformctl/daemons'))
    const all = [file, at('srv/kiln.env'), at('data/daemon.json'), at(`state/platformctl/daemons/${pointer}`)]
    for (const foreign of all) {
      await chown(foreign, 65_534, 65_534)
      const { stdout, stderr } = await run(['preflight'])
      expect(stderr).toContain(`is not used. The file belongs to another user (${foreign}).`)
      expect(stdout).toContain('no definition found')
      // Its addresses would be asked with the token of its env files.
      const status = await run(['status', '--no-config', '--data', at('data'), '--format', 'json'])
      const isNamed = foreign === at('srv/kiln.env') || foreign === at('data/daemon.json')
      expect([foreign, status.stdout === '', status.exitCode === 2]).toEqual([foreign, isNamed, isNamed])
      await chown(foreign, 0, 0)
    }
    await chmod(file, 0o666)
    expect((await run(['preflight'])).stderr).toContain('is not used')
    // Nor where it is found beside an env file.
    const beside = await run(['preflight', '--env-file', at('srv/kiln.env')])
    expect(beside).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('Other users may write') })
    // Of another account, as a systemd unit's: it is named how to act as that one, rather than on something else.
    await chown(at('data'), 65_534, 65_534)
    expect(await run(['course', 'status'])).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /nsenter --target \d+ --mount --setuid 65534 --setgid 65534 -- platformctl course status\. /,
      ),
    })
    const status = await run(['status', '--no-config', '--data', at('data')])
    expect(status.stderr).toMatch(/nsenter .* platformctl status --data /)
    await daemon.stop()
    const stopped = await run(['status', '--no-config', '--data', at('data')])
    expect(stopped).toMatchObject({ exitCode: 2, stderr: expect.not.stringContaining('nsenter') })
    await chown(at('data'), 0, 0)
    const own = await run(['course', 'list', '--data', at('data')])
    expect(own).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('Other users may write') })
  },
)

const BOUNCE = `From: MAILER-DAEMON@example.com
To: bounce@example.com
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mail.example.com

Final-Recipient: rfc822; ada@example.com
Action: failed
Status: 5.1.1

--b--
`

test.runIf(process.getuid?.() === 0)(
  'the pipe of the feedback guide, which root runs, finds the definition of one box, whose data belong to another user',
  async () => {
    const { at, here } = await school()
    await (await here(['--data', at('data')], at('srv'))).stop()
    for (const name of ['', ...(await readdir(at('data')))]) await chown(at(`data/${name}`), 65_534, 65_534)
    const page = await readFile(new URL('../../docs/guides/feedback.md', import.meta.url), 'utf8')
    const script = /<<'END'\n(#!.*?)END\n/s.exec(page)?.[1] ?? ''
    const ours = script
      .replace(/^platformctl/m, () => `${process.execPath} -- ${bin}`)
      .replace('/srv/platform', () => at('srv'))
      .replace('/etc/platformctl/env', () => at('env/file'))
      .replace('/var/lib/platformctl', () => at('data'))
    await mkdir(at('env'))
    await writeFile(at('env/file'), '')
    const { exitCode, stderr, stdout } = await execa('sh', ['-c', ours], {
      cwd: at('elsewhere'),
      input: BOUNCE,
      reject: false,
    })
    // A bounce without proof that the mail was ours: it is understood, and Postfix need not bring it again.
    expect(stderr).not.toContain('belongs to')
    expect(stdout).toContain('not about our mail')
    expect(exitCode).toBe(0)
  },
)

/** A daemon of this process, as its record and its pointer say it. */
async function recorded(
  { at, file }: Awaited<ReturnType<typeof school>>,
  definition: string | null = file,
  envFiles: readonly string[] = [],
) {
  await mkdir(at('data'), { recursive: true })
  writeRecord(at('data'), {
    version: 1,
    pid: process.pid,
    host: hostname(),
    startedAt: '2026-11-22T00:00:00.000Z',
    build: null,
    platform: { name: 'Kiln School', definition, fingerprint: null },
    store: { kind: 'sqlite', location: at('data/platform.sqlite') },
    envFiles,
    schedule: true,
    urls: {},
  })
}

test('the definition that is named wins, then that of this folder, then one beside the env file, then the daemon’s', async () => {
  const it = await school()
  const define = async (folder: string, name: string) => {
    await mkdir(it.at(folder), { recursive: true })
    await writeFile(it.at(`${folder}/platform.config.json`), JSON.stringify({ preset: 'base', name }))
  }
  await define('elsewhere', 'Here')
  await define('far', 'Far')
  await recorded(it, it.at('far/platform.config.json'))
  const data = ['--data', it.at('data')]
  const words = [...data, '--env-file', it.at('srv/kiln.env')]
  const which = async (...args: string[]) =>
    /^Platform {2}(.*), defined by /m.exec((await it.run(['preflight', ...args])).stdout)?.[1]
  expect(await which(...words, '--config', it.at('far/platform.config.json'))).toBe('Far')
  expect(await which(...words)).toBe('Here')
  await rm(it.at('elsewhere/platform.config.json'))
  expect(await which(...words)).toBe('Kiln School')
  expect(await which(...data)).toBe('Far')
  // Also of the folder that is used when none is named.
  await rename(it.at('data'), it.at('elsewhere/.platformctl'))
  expect(await which()).toBe('Far')
})

test('a daemon or a demo that is started takes nothing over from the daemon that runs here', async () => {
  const it = await school()
  await recorded(it)
  onTestFinished(leavePointer(it.at('state/platformctl/daemons'), it.at('data')))
  const machine = { cwd: it.at('elsewhere'), env: { XDG_STATE_HOME: it.at('state') }, say() {} }
  const chosen = async (name: string) => {
    const { platform, daemon } = await choosePlatform(takeConfigWords([name]), machine)
    return [platform.name, daemon?.dataFolder]
  }
  expect(await chosen('preflight')).toEqual(['Kiln School', it.at('data')])
  for (const name of ['daemon', 'demo']) expect(await chosen(name)).toEqual(['platformctl', undefined])
})

test.runIf(process.getuid?.() === 0)(
  'any env file of a daemon that another user could have written is enough not to use it, also without a definition',
  async () => {
    const it = await school()
    const files = [it.at('srv/kiln.env'), it.at('srv/more.env')]
    await writeFile(it.at('srv/more.env'), '')
    await recorded(it, null, files)
    onTestFinished(leavePointer(it.at('state/platformctl/daemons'), it.at('data')))
    expect((await it.run(['env', 'list'])).stderr).toContain('acting on the daemon that runs here')
    for (const file of files) {
      await chown(file, 65_534, 65_534)
      const { stderr } = await it.run(['env', 'list'])
      expect(stderr).toContain(`is not used. The file belongs to another user (${file}).`)
      await chown(file, 0, 0)
    }
  },
)
