import { cp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { readRecord, recordDaemon, recordRefusal, writeRecord } from '../../src/core/daemon-record.ts'
import { UNATTENDED } from '../../src/core/incidents/incident.ts'
import { openStore } from '../../src/core/store/open.ts'
import { startLearningDaemon } from '../support/daemon.ts'
import { emptyFolder, folderWith } from '../support/folder.ts'
import { begin } from '../support/learning.ts'
import { run as runIn } from '../support/run.ts'
import { S3_KEY, s3Storage } from '../support/s3.ts'
import { healthBody, serve } from '../support/servers.ts'

async function daemon({
  schedule = false,
  env = {},
}: {
  schedule?: boolean
  env?: Record<string, string>
} = {}) {
  const cwd = await emptyFolder()
  const folder = path.join(cwd, 'data')
  const file = path.join(cwd, 'platform.env')
  await writeFile(file, 'BUILD_STAMP=b7\nEMAIL_DISPATCH_SECRET=canary-of-the-dispatch-secret\n')
  const running = await startLearningDaemon({
    env: { BUILD_STAMP: 'b7', EMAIL_DISPATCH_SECRET: 'canary-of-the-dispatch-secret', ...env },
    envFiles: [file],
    services: ['web', 'api', 'agent'],
    dataFolder: folder,
    schedule,
  })
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= running.close())
  onTestFinished(stop)
  const record = readRecord(folder)
  if (record === undefined) throw new Error('a daemon leaves its record')
  const run = (args: readonly string[], env: Record<string, string> = {}) =>
    runIn([...args, ...(args.includes('--data') ? [] : ['--data', 'data'])], { cwd, env })
  const json = async (env: Record<string, string> = {}) => {
    const { code, stdout } = await run(['status', '--format', 'json'], env)
    return { code, report: JSON.parse(stdout) }
  }
  return { folder, file, env, stop, run, json, running, record }
}

test('status shows services, store, schedule, backlog and problems at once, and nothing secret', async () => {
  const it = await daemon({ schedule: true })
  const { code, stdout } = await it.run(['status'])
  expect(stdout).toMatch(/^daemon {5}running as process \d+ since .*, build b7$/m)
  expect(stdout).toMatch(new RegExp(`^web {8}(?:ok|degraded), ${it.running.urls.web}`, 'm'))
  expect(stdout).toMatch(/^store {6}sqlite .*platform\.sqlite$/m)
  expect(stdout).toMatch(/^schedule {3}on in process \d+, every minute, last hour [-\dT]+:00Z$/m)
  expect(stdout).toMatch(/^backlog {4}nothing is due$/m)
  expect(stdout).toMatch(/^problems {3}none$/m)
  expect(stdout).toMatch(/^last mail {2}none sent lately$/m)
  expect(stdout).toMatch(new RegExp(`^env files {2}${it.file}$`, 'm'))
  expect(stdout).toMatch(/^alerts {5}none/m)
  expect(code).toBe(0)
  expect(stdout + JSON.stringify(readRecord(it.folder))).not.toContain('canary')
  await it.stop()
  expect(await it.json()).toMatchObject({
    code: 1,
    report: {
      version: 1,
      daemon: { running: false, stoppedAt: expect.any(String) },
      services: [{ service: 'web', state: 'stopped' }, {}, {}],
    },
  })
})

test('status lists the channels that alert somebody: not the ping, nor mail without its group', async () => {
  const it = await daemon()
  const alerts = async (env: Record<string, string>) => (await it.json(env)).report.alerts
  const quiet = { HEARTBEAT_PING_URL: 'https://hc.example.com/ping', ALERT_EMAIL_TO: 'ops@example.com' }
  expect(await alerts(quiet)).toEqual([])
  const mail = {
    MAILER_API_KEY: 'key-for-tests',
    MAILER_SMTP_URL: 'smtp://127.0.0.1:1',
    MAILER_FROM: 'course@example.com',
  }
  const [ALERT_WEBHOOK_URL, ALERT_ESCALATION_URL] = ['https://ops.example.com/', 'https://b.example.com/']
  expect(await alerts({ ...quiet, ALERT_WEBHOOK_URL })).toEqual(['ALERT_WEBHOOK_URL'])
  expect(await alerts({ ...quiet, ...mail, ALERT_WEBHOOK_URL, ALERT_ESCALATION_URL })).toEqual([
    'ALERT_WEBHOOK_URL',
    'ALERT_ESCALATION_URL',
    'ALERT_EMAIL_TO',
  ])
})

test('a service that runs and does not answer, or answers that it fails, is told with its reason and fails the command', async () => {
  const it = await daemon()
  const answering = (state: string) =>
    serve((_, response) =>
      response.end(
        healthBody({
          service: state === 'ok' ? 'agent' : 'api',
          state,
          probes: {
            store: { state, checked: true, reason: 'no answer in time' },
            mail: { state: 'skipped', checked: false, reason: 'not configured' },
          },
        }),
      ),
    )
  const told = async (urls: Record<string, string>) => {
    writeRecord(it.folder, { ...it.record, urls })
    const { code, report } = await it.json()
    return { code, services: report.services }
  }
  const reason = 'store: no answer in time'
  const refused = { reason: expect.stringContaining('refused') }
  for (const [code, service, state, url, more] of [
    [1, 'web', 'unreached', 'http://127.0.0.1:1', refused],
    [1, 'api', 'failing', await answering('failing'), { reason }],
    [0, 'api', 'degraded', await answering('degraded'), { reason }],
    [0, 'agent', 'ok', await answering('ok'), {}],
  ] as const)
    expect(await told({ [service]: url })).toEqual({ code, services: [{ service, url, state, ...more }] })
  // What the page says counts where deep health is for operators.
  const web = await serve(({ url = '' }, response) => {
    if (url.includes('deep')) response.writeHead(401).end()
    else if (url.includes('status')) response.end('{"services":[{"service":"web","state":"degraded"}]}')
    else response.end(healthBody({ service: 'web', state: 'ok', probes: {} }))
  })
  expect(await told({ web })).toMatchObject({ services: [{ state: 'degraded' }] })
})

test('of the env files that the daemon was started with, one that is gone keeps none of the others from being read', async () => {
  const it = await daemon()
  await writeFile(it.file, 'ALERT_WEBHOOK_URL=https://ops.example.com/alerts\n')
  writeRecord(it.folder, { ...it.record, envFiles: [path.join(it.folder, 'gone.env'), it.file] })
  expect((await it.json()).report.alerts).toEqual(['ALERT_WEBHOOK_URL'])
  expect((await it.run(['status'])).stderr).toContain('not read: ')
})

test('status judges as health --deep and the status page do, and its exit code follows', async () => {
  const it = await daemon({
    env: {
      MAILER_API_KEY: 'key-for-tests',
      MAILER_SMTP_URL: 'smtp://127.0.0.1:1',
      MAILER_FROM: 'course@example.com',
      // Both of a rotation.
      HEALTH_DEEP_TOKEN: 'a-health-token-of-thirty-two-bytes,the-health-token-before-of-32-byte',
    },
  })
  const args = ['health', '--deep', '--service', 'web', '--url', `web=${it.running.urls.web}`]
  const deep = await runIn(args, { env: it.env })
  const { code, report } = await it.json(it.env)
  expect([deep.code, code]).toEqual([1, 1])
  expect(report).toMatchObject({
    state: 'failing',
    services: [{ service: 'web', state: 'failing', reason: expect.stringContaining('mail: ') }, {}, {}],
  })
  // Without the token, what the page tells everybody.
  const page = async () => (await fetch(new URL('/status.json', it.running.urls.web))).json()
  await expect.poll(page).toMatchObject({ services: [{ service: 'web', state: 'failing' }, {}, {}] })
  expect(await it.run(['status'])).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(
      /^web {8}failing, .*its reasons need the service’s HEALTH_DEEP_TOKEN; the status page says failing$/m,
    ),
  })
})

test('two daemons with one folder are both shown, with whose schedule runs, and the one that goes on stays', async () => {
  const it = await daemon({ schedule: true })
  const beside = { ...it.record, pid: process.ppid, urls: {}, schedule: false }
  recordDaemon(it.folder, beside)
  const { code, stdout } = await it.run(['status'])
  expect(stdout).toMatch(new RegExp(`^daemon {5}running as process ${process.ppid} since`, 'm'))
  expect(stdout).toMatch(
    new RegExp(`^daemon too running as process ${process.pid} since .*same folder$`, 'm'),
  )
  expect(stdout).toMatch(new RegExp(`^web {8}(?:ok|degraded), ${it.running.urls.web}`, 'm'))
  expect(stdout).toMatch(new RegExp(`^schedule {3}on in process ${process.pid}, every minute`, 'm'))
  expect(code).toBe(0)
  // The first stops: its record does not hide the second.
  await it.stop()
  expect(readRecord(it.folder)).toEqual(beside)
  recordDaemon(it.folder, { ...beside, stoppedAt: new Date().toISOString() })
  expect(readRecord(it.folder)?.stoppedAt).toBeDefined()
})

test('of two daemons with one folder, the services of the one that goes on are asked when the other crashed', async () => {
  const it = await daemon()
  const crashed = { ...it.record, pid: 2 ** 22 + 1, urls: { api: 'http://127.0.0.1:1' }, others: [it.record] }
  writeRecord(it.folder, crashed)
  const { code, stdout } = await it.run(['status'])
  expect(stdout).toMatch(/^daemon {5}not running; it ended without stopping in order/m)
  expect(stdout).toMatch(new RegExp(`^daemon too running as process ${process.pid} since`, 'm'))
  expect(stdout).toMatch(/^api {8}stopped, http:\/\/127\.0\.0\.1:1$/m)
  expect(stdout).toMatch(new RegExp(`^web {8}(?:ok|degraded), ${it.running.urls.web}`, 'm'))
  expect(code).toBe(1)
})

test('of two daemons with one folder and the same service, each is asked, and one that fails fails the command', async () => {
  const it = await daemon()
  const [well, failing] = await Promise.all(
    ['ok', 'failing'].map((state) =>
      serve((_, response) => response.end(healthBody({ service: 'web', state, probes: {} }))),
    ),
  )
  const earlier = { ...it.record, urls: { web: failing } }
  writeRecord(it.folder, { ...it.record, pid: process.ppid, urls: { web: well }, others: [earlier] })
  expect(await it.json()).toMatchObject({
    code: 1,
    report: {
      services: [
        { service: 'web', url: well, state: 'ok' },
        { service: 'web', url: failing, state: 'failing' },
      ],
    },
  })
})

test('a probe that fails because of another one names it', async () => {
  const it = await daemon()
  const failing = (service: string, ...names: string[]) =>
    serve((_, response) =>
      response.end(
        healthBody({
          service,
          state: 'failing',
          probes: Object.fromEntries(
            names.map((name) => [name, { state: 'failing', checked: true, reason: 'its disk is full' }]),
          ),
        }),
      ),
    )
  const urls = { web: await failing('web', 'store', 'mail'), api: await failing('api', 'job_store') }
  writeRecord(it.folder, { ...it.record, urls })
  const { stdout } = await it.run(['status'])
  expect(stdout).toContain(`${urls.web}: store: its disk is full; mail: its disk is full\n`)
  expect(stdout).toContain(`${urls.api}: job_store: its disk is full (because of store)\n`)
})

test('status names the incidents that are open', async () => {
  const it = await daemon()
  const store = await openStore({ kind: 'sqlite', file: path.join(it.folder, 'platform.sqlite') })
  const openedAt = Date.now() - 60_000
  const incident = {
    id: 'clock0000001',
    cause: 'clock_wrong',
    service: 'web',
    reason: '7200 seconds ahead of the store’s',
    affected: [],
    openedAt,
    seenAt: openedAt,
    ...UNATTENDED,
  }
  // A check of a definition may fail and give no reason.
  const silent = { ...incident, id: 'kiln00000001', cause: 'kiln', reason: undefined }
  const opens = [incident, silent]
  await store.incidents.follow({ now: openedAt, channels: [], decide: () => ({ opens }) })
  await store.close()
  expect(await it.run(['status', 'update', incident.id, 'We set the clock.'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('visitors do not see clock0000001 (clock_wrong)'),
  })
  const { stdout } = await it.run(['status'])
  expect(stdout).toMatch(/^problems {3}.*clock_wrong since \S+Z: 7200 seconds ahead of the store’s; /m)
  expect(stdout).toMatch(/^problems {3}.*kiln since \S+Z: it gave no reason; .*platformctl alert list/m)
})

test('deliveries that wait for a decision, or a store that status cannot read, fail the command', async () => {
  const it = await daemon()
  const file = path.join(it.folder, 'platform.sqlite')
  const store = await openStore({ kind: 'sqlite', file })
  const request = { course: 'quantum', identity: 'ada@example.com', address: 'ada@example.com', id: 'ada' }
  await store.course.requestConfirmation({ ...request, tokenHash: 'h', now: 0 })
  await store.course.confirm({ begin, tokenHash: 'h', now: 0 })
  await store.close()
  expect(await it.json()).toMatchObject({ code: 0, report: { store: { counts: { dueNow: 1 } } } })
  const database = new Database(file)
  for (const kind of ['parked', 'unknown']) {
    database.exec(
      `UPDATE subscription SET problem_kind = '${kind}', problem_reason = 'x', problem_since = 1, next_attempt_at = NULL`,
    )
    expect(await it.json()).toMatchObject({ code: 1, report: { store: { counts: { [kind]: 1 } } } })
  }
  database.exec('UPDATE subscription SET problem_kind = NULL, problem_reason = NULL, problem_since = NULL')
  database.close()
  expect((await it.json()).code).toBe(0)
  writeRecord(it.folder, { ...it.record, store: { kind: 'postgres', location: '127.0.0.1:1/platform' } })
  expect(await it.json()).toMatchObject({ code: 1, report: { store: { fault: expect.any(String) } } })
})

test('a folder without a daemon’s record is wrong usage, and says when and why its first start was refused', async () => {
  const cwd = await folderWith({ 'data/.keep': '' })
  const run = (env: Record<string, string>, command: string) =>
    runIn([command, '--data', 'data'], { cwd, env })
  expect(await run({}, 'status')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/no daemon has started with the data folder .* \(see its log\): /),
  })
  await run({ STORE_URL: 'postgress://ada:canary@127.0.0.1/school' }, 'daemon')
  const first = await run({}, 'status')
  expect(first.code).toBe(2)
  expect(first.stderr).toMatch(
    /\(the start of \d{4}-\S+Z was refused: STORE_URL is not the address of a store/,
  )
  expect(first.stderr).not.toContain('canary')
  await run({ PAYMENTS_SECRET_KEY: 'sk_test_0123456789abcdef' }, 'daemon')
  expect((await run({}, 'status')).stderr).toContain('was refused: half-configured: payments')
})

test('a daemon’s record that this user may not read is not called missing', async () => {
  const cwd = await emptyFolder()
  // Root may read everything, but not through a link to itself.
  await symlink('daemon.json', path.join(cwd, 'daemon.json'))
  expect(await runIn(['status', '--data', '.'], { cwd })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /daemon\.json cannot be opened \(ELOOP\): [^\n]*run this as the daemon’s user/,
    ),
  })
})

test('the store that the daemon recorded is accepted however it is named, and no command acts on another', async () => {
  const it = await daemon()
  expect((await it.run(['db', 'status'])).code).toBe(0)
  const file = path.join(it.folder, 'platform.sqlite')
  expect((await it.run(['db', 'status'], { STORE_URL: `sqlite:${file}` })).code).toBe(0)
  const other = await it.run(['db', 'status'], { STORE_URL: 'sqlite:other.sqlite' })
  expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining('other.sqlite') })
  recordRefusal(it.folder, 'later')
  expect(readRecord(it.folder)).toBeDefined()
  const store = { kind: 'postgres', location: 'db.example.com:5432/platform' } as const
  writeRecord(it.folder, { ...it.record, store })
  for (const command of ['db status', 'course status', 'dispatch --local --dry-run']) {
    const refused = await it.run(command.split(' '))
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('PostgreSQL (db.example.com:5432/platform)')
    expect(refused.stderr).toContain(`--env-file ${it.file}`)
  }
})

test('an announcement is on the page and in its JSON, as plain text, until it is withdrawn', async () => {
  const it = await daemon()
  const announce = (...args: string[]) => it.run(['status', 'announce', ...args])
  const said = await announce('Search is <slow>', '--for', '2h')
  expect(said).toMatchObject({ code: 0, stderr: '' })
  const [, id = ''] = /^announced as ([0-9a-f]{8}), until \d{4}-.*Z\n$/.exec(said.stdout) ?? []
  const planned = (await announce('No sign-in', '--from', '2099-01-10T23:00+01:00', '--for', '10m')).stdout
  expect(planned).toMatch(/from 2099-01-10T22:00:00.000Z until 2099-01-10T22:10:00.000Z$/m)
  const gone = (await announce('Gone <soon>')).stdout
  expect(gone).toMatch(/until it is withdrawn$/m)
  const [, goneId = ''] = /as ([0-9a-f]{8})/.exec(gone) ?? []
  const update = (...args: string[]) => it.run(['status', 'update', ...args])
  expect((await update(goneId, 'Found <it>', '--state', 'identified')).stdout).toBe(
    `updated ${goneId}: identified\n`,
  )
  expect((await update(goneId, 'Still at it')).code).toBe(0)
  expect((await update(/as ([0-9a-f]{8})/.exec(planned)?.[1] ?? '', 'As planned')).code).toBe(0)
  const long = 'Why it happened. '.repeat(100)
  expect(await update(goneId, long)).toMatchObject({ code: 2, stderr: expect.stringContaining('postmortem') })
  expect(await update(goneId, long, '--state', 'postmortem')).toMatchObject({ code: 0 })
  expect(await update(id, 'Withdrawn', '--state', 'mended')).toMatchObject({ code: 2 })
  expect(await it.run(['status', 'withdraw', id])).toMatchObject({ code: 0 })
  const again = await it.run(['status', 'withdraw', id])
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining(`no announcement ${id}`) })
  const read = async (path: string, type: string) =>
    (await fetch(new URL(path, it.running.urls.web), { headers: { accept: type } })).text()
  expect(JSON.parse(await read('/status.json', 'application/json'))).toMatchObject({
    announcements: [
      {
        kind: 'current',
        text: 'Gone <soon>',
        until: null,
        updates: [
          { state: 'identified', text: 'Found <it>' },
          { state: null, text: 'Still at it' },
          { state: 'postmortem', text: long.trim() },
        ],
      },
      {
        kind: 'planned',
        text: 'No sign-in',
        from: '2099-01-10T22:00:00.000Z',
        until: '2099-01-10T22:10:00.000Z',
        updates: [{ state: null, text: 'As planned' }],
      },
    ],
  })
  const page = await read('/', 'text/html')
  expect(page).toContain('<p class="written" dir="auto">Gone &lt;soon&gt;</p>')
  expect(page).toMatch(/<strong>Identified<\/strong> · <time.*?<p [^>]*>Found &lt;it&gt;<\/p><\/li>/)
  expect(await update(id, 'Withdrawn')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`no incident ${id}`),
  })
  expect(await read('/status.atom', 'application/atom+xml')).toMatch(
    new RegExp(
      `#announcement-${goneId}</id>[^]*Gone &lt;soon&gt;\nIdentified, .* UTC: Found &lt;it&gt;\nUpdate, .*Still at it`,
    ),
  )
  expect(page).toMatch(
    /<strong>Planned<\/strong> · <time .*<a href="status.ics">Add to calendar<\/a><\/p><p [^>]*>No sign-in</,
  )
  expect(await read('/status.ics', 'text/calendar')).toContain('SUMMARY:platformctl: No sign-in\r\n')
  expect(page).not.toContain('Search is')
})

test('an announcement in two languages is read in the reader’s', async () => {
  const it = await daemon()
  const args = ['--translation', 'DE=Die Suche ist langsam', '--translation', 'fr=Recherche lente']
  expect((await it.run(['status', 'announce', 'Search is slow', ...args])).stderr).toBe('')
  const read = async (path: string, headers: Record<string, string>) =>
    (await fetch(new URL(path, it.running.urls.web), { headers })).text()
  const html = { accept: 'text/html' }
  expect(await read('/', { ...html, 'accept-language': 'de-AT, en;q=0.5' })).toContain(
    '>Die Suche ist langsam<',
  )
  expect(await read('/?language=de', html)).toContain('>Die Suche ist langsam<')
  expect(await read('/', html)).toContain('>Search is slow<')
  expect(JSON.parse(await read('/status.json', { accept: 'application/json' }))).toMatchObject({
    announcements: [
      { text: 'Search is slow', translations: { de: 'Die Suche ist langsam', fr: 'Recherche lente' } },
    ],
  })
})

test.each([
  [['Slow', '--translation', 'Langsam'], 'A language tag, = and the text'],
  [['Slow', '--translation', 'de= '], 'Say something'],
  [['Slow', '--translation', 'de=Eins', '--translation', 'DE=Zwei'], 'once for a language'],
  [['  '], '<text> is empty'],
  [['\u200b\u2060'], 'Say something'],
  [['\u3164\u2800'], 'Say something'],
  [['x'.repeat(501)], 'at most 500 characters'],
  [['Slow', '--for', 'soon'], 'A duration such as 30m, 2h or 1d'],
  [['Slow', '--for', '91d'], 'of at most 90d'],
  [['Slow', '--from', '2099-01-10 22:00'], 'A time with its offset'],
  [['Slow', '--from', '2099-02-29T22:00Z'], 'A time with its offset'],
  [['Slow', '--from', '2020-01-10T22:00Z', '--for', '1h'], 'choose a later --from'],
])('announce %j is refused, and says what is needed', async (args, sentence) => {
  const file = path.join(await emptyFolder(), 'platform.sqlite')
  await (await openStore({ kind: 'sqlite', file })).close()
  const told = await runIn(['status', 'announce', ...args], { env: { STORE_URL: `sqlite:${file}` } })
  expect(told).toMatchObject({ code: 2, stderr: expect.stringContaining(sentence) })
})

test('the status page is exported as files, which a second host can serve', async () => {
  const it = await daemon()
  await it.run(['status', 'announce', 'We move', '--for', '1h'])
  const told = await it.run(['status', 'export', 'out'])
  expect(told).toMatchObject({ code: 0, stdout: 'written to out\n' })
  const page = await readFile(path.join(it.folder, '../out/index.html'), 'utf8')
  expect(page).toContain('>We move</p>')
  expect(page).not.toContain('<form')
  expect((await readdir(path.join(it.folder, '../out'))).toSorted().join()).toBe(
    'badge.svg,incidents,index.html,status.atom,status.ics,status.json',
  )
  const fails = async (code: number, stderr: string, ...args: string[]) =>
    expect(await it.run(['status', 'export', ...args])).toMatchObject({
      code,
      stderr: expect.stringContaining(stderr),
    })
  await fails(2, 'S3_KEY', 'https://s3.example/x')
  for (const scheme of ['s3', 'ftp', 'gs']) await fails(2, 'no address of a bucket', `${scheme}://bucket/x`)
  const withKey = await it.run(['status', 'export', 'https://id:pa55w0rd@s3.example/x'])
  expect(withKey).toMatchObject({ code: 2, stderr: expect.stringContaining('S3_KEY and S3_SECRET') })
  expect(`${withKey.stdout}${withKey.stderr}`).not.toContain('pa55w0rd')
  const { url, objects } = await s3Storage()
  const toBucket = (env: Record<string, string>) => it.run(['status', 'export', `${url}/status`], env)
  const refused = await toBucket({ ...S3_KEY, S3_SECRET: 'of-another' })
  expect([refused.code, objects.size]).toEqual([3, 0])
  expect(refused.stderr).toContain('cannot be written: the bucket answers with 403')
  expect(await toBucket(S3_KEY)).toMatchObject({ code: 0 })
  expect([...objects.keys()].at(-1)).toBe('/status/index.html')
  await fails(2, '', 'out', '--data', 'elsewhere')
  const copied = path.join(it.folder, '../copied')
  await cp(it.folder, copied, { recursive: true })
  await rm(path.join(copied, 'daemon.json'))
  await writeFile(path.join(copied, 'history.sqlite'), 'no database')
  await fails(2, 'history.sqlite is not an SQLite file', 'out', '--data', 'copied')
  await writeFile(path.join(it.folder, '../file'), '')
  const taken = 'file cannot be written: something else has this name. Move it away, then try again.'
  await fails(1, taken, 'file')
})
