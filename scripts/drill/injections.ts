import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import type pg from 'pg'
import { authority } from '../../test/support/outside.ts'
import type { Cell } from './product.ts'
import { DATA, HOME, joined, listening, OUTSIDE, type Running, relay, until, type World } from './world.ts'

/** How a cell's fault is made, what must be said of it, and how it ends. */
export interface Injection {
  /** What the message, or a command that it prints, must say. */
  readonly cause: RegExp
  /** Before anything runs; not part of the fault. */
  readonly prepare?: () => unknown
  readonly inject: (running: Running | undefined) => unknown
  readonly heal: () => unknown
  /** Makes use of what is broken, as visitors would. */
  readonly use?: () => unknown
  /** How the daemon, and a drain or a restore, are started. */
  readonly daemon?: string
  readonly daemonEnv?: Record<string, string>
  readonly command?: string
  readonly commandEnv?: Record<string, string>
  /** A command that tells it, where the daemon itself meets nothing. */
  readonly ask?: string
  /** Somebody outside tells it: the process itself is gone. */
  readonly witness?: boolean
  /** What the runbook says to look at, too. */
  readonly look?: string
  /** The channel that is left. */
  readonly by?: 'mail'
  /** The fault is there when the drain begins. */
  readonly early?: boolean
  /** The daemon's alert tells it, also during a drain. */
  readonly alerts?: boolean
  /** It may wait until it works again, and then do all that it was asked to. */
  readonly ridesOut?: boolean
  /** Nothing but its end tells that a process was killed. */
  readonly isKilled?: boolean
  /** Beyond what most cells take, in milliseconds. */
  readonly moreMs?: number
}

const FILE = `${DATA}/platform.sqlite`
const STORE_OPTIONS = `--data ${DATA} --env-file ${HOME}/.env`
export const DRAIN = `platformctl dispatch --local --drain ${STORE_OPTIONS}`
const BACKUP = '/var/backups/b.sqlite.zst'
export const RESTORE = `platformctl db restore ${BACKUP} --force ${STORE_OPTIONS}`
const SERVICE = 65_534

/** Down for most of the time, and up for a moment now and then. */
function flapping(down: () => unknown, up: () => unknown) {
  let over = false
  let cycle: Promise<void> | undefined
  return {
    moreMs: 200_000,
    inject() {
      cycle = (async () => {
        while (!over) {
          await down()
          for (let left = 700; left > 0 && !over; left -= 1) await sleep(100)
          await up()
          for (let left = 100; left > 0 && !over; left -= 1) await sleep(100)
        }
      })()
      return sleep(500)
    },
    async heal() {
      over = true
      await cycle
      await up()
    },
  }
}

/** Calls of a process that fail or come late, as strace injects them. */
function brokenCalls(what: string) {
  let strace: ReturnType<typeof spawn> | undefined
  let ended: Promise<unknown> | undefined
  const calls = what.slice(0, what.indexOf(':'))
  return {
    prefix: `strace -f -o /dev/null -e trace=${calls} -e inject=${what}`,
    async attach(pid: number) {
      strace = spawn(
        'strace',
        ['-f', '-o', '/dev/null', '-p', String(pid), '-e', `trace=${calls}`, '-e', `inject=${what}`],
        { stdio: ['ignore', 'ignore', 'pipe'] },
      )
      ended = new Promise((resolve) => strace?.on('close', resolve))
      await Promise.race([ended, new Promise<void>((resolve) => strace?.stderr?.on('data', () => resolve()))])
    },
    async detach() {
      strace?.kill('SIGINT')
      await ended
    },
  }
}

const usePlatform = async (count = 14) => {
  for (let index = 0; index < count; index += 1)
    await fetch('http://127.0.0.1:3000/api/email/subscribe', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: `visitor${index}@example.com` }),
    }).catch(() => {})
}

async function store({ how, when }: Cell, world: World): Promise<Injection> {
  const server = await world.postgres()
  const admin = await server.createDatabase()
  const sql = (text: string, on = admin) => server.query(on, text)
  await sql("CREATE ROLE app LOGIN PASSWORD 'the-password-of-the-app'")
  await sql(`ALTER DATABASE ${new URL(admin).pathname.slice(1)} OWNER TO app`)
  const database = new URL(admin).pathname.slice(1)
  const between = await relay(5433, server.port)
  const url = `postgres://app:the-password-of-the-app@127.0.0.1:5433/${database}`
  world.settings.STORE_URL = url
  const cut = () => sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'")
  const held: pg.Client[] = []
  let replaced = ''
  const hows: Ways = {
    gone: {
      cause: /cannot be reached|refused the connection/,
      inject: () => between.mode('refuse'),
      heal: () => between.mode('pass'),
    },
    slow: {
      cause: /cannot be reached|did not answer/,
      inject: () => between.mode({ lateMs: 12_000 }),
      heal: () => between.mode('pass'),
    },
    full: {
      cause: /no connection left/,
      async inject() {
        const { Client } = (await import('pg')).default
        await cut()
        for (let free = true; free; ) {
          const client = new Client({ connectionString: url.replace('5433', String(server.port)) })
          client.on('error', () => {})
          free = await client.connect().then(
            () => true,
            () => false,
          )
          if (free) held.push(client)
        }
      },
      heal: () => Promise.all(held.map((one) => one.end())),
    },
    lying: {
      cause: /accepts no writes|can only be read/,
      async inject() {
        await sql(`ALTER DATABASE ${database} SET default_transaction_read_only = on`)
        await cut()
      },
      async heal() {
        await sql(`ALTER DATABASE ${database} RESET ALL`, admin.replace(database, 'postgres'))
        await cut()
      },
    },
    flapping: {
      cause: /cannot be reached|refused the connection/,
      ...flapping(
        () => between.mode('refuse'),
        () => between.mode('pass'),
      ),
    },
    'wrong owner': {
      cause: /does not let|belongs? to/,
      async inject() {
        await sql(
          'CREATE ROLE other; REASSIGN OWNED BY app TO other; REVOKE ALL ON SCHEMA platformctl FROM app',
        )
        await cut()
      },
      heal: () => sql(`REASSIGN OWNED BY other TO app; ALTER DATABASE ${database} OWNER TO app`),
    },
    'wrong version': {
      cause: /newer/,
      inject: () => sql('UPDATE platformctl.schema_version SET version = version + 100'),
      heal: () => sql('UPDATE platformctl.schema_version SET version = version - 100'),
    },
    expired: {
      cause: /refused the user or the password|password/,
      async inject() {
        await sql("ALTER ROLE app VALID UNTIL '2020-01-01'")
        await cut()
      },
      heal: () => sql("ALTER ROLE app VALID UNTIL 'infinity'"),
    },
  }
  return {
    ...wayOf(hows, how),
    command:
      when === 'restore'
        ? `platformctl db after-restore --from "$REPLACED" --env-file ${HOME}/.env`
        : `platformctl dispatch --local --drain --env-file ${HOME}/.env`,
    commandEnv: {
      get REPLACED() {
        return replaced
      },
    },
    async prepare() {
      await world.seed(when === 'drain' ? 60 : 3)
      delete world.settings.STORE_URL
      await world.must(`platformctl db copy --to '${url}' ${STORE_OPTIONS}`)
      world.settings.STORE_URL = url
      rmSync(FILE)
      await cut()
      if (when === 'restore') replaced = await server.createDatabase(admin)
      if (when !== 'drain') await sql('UPDATE platformctl.subscription SET next_attempt_at = NULL')
    },
    ...(how === 'wrong version' &&
      when === 'running' && { ask: `platformctl dispatch --local --dry-run --env-file ${HOME}/.env` }),
    ...(when === 'drain' && how === 'wrong version' && { early: true }),
  }
}

function mail({ how, when }: Cell, world: World): Injection {
  const { mail: server } = world
  const says = (word: string, text: string | null) => ({
    inject: () => {
      server.reply = (asked) => (asked === word ? (text ?? 'cut') : undefined)
    },
    heal: () => {
      server.reply = () => undefined
    },
  })
  const hows: Ways = {
    gone: {
      cause: /cannot be reached|refused|connection/,
      inject: () => world.relays.mail.mode('refuse'),
      heal: () => world.relays.mail.mode('pass'),
    },
    slow: {
      cause: /did not answer|in time|timed? ?out|silent/i,
      moreMs: 150_000,
      inject: () => world.relays.mail.mode('stall'),
      async heal() {
        await world.relays.mail.mode('refuse')
        await world.relays.mail.mode('pass')
      },
    },
    full: { cause: /452/, ...says('MAIL', '452 4.3.1 insufficient system storage') },
    lying: { cause: /unknown|broke/, ...says('END', null) },
    flapping: {
      cause: /cannot be reached|refused|connection/,
      ...flapping(
        () => world.relays.mail.mode('refuse'),
        () => world.relays.mail.mode('pass'),
      ),
    },
    'wrong owner': { cause: /553|sender/, ...says('MAIL', '553 5.7.1 sender address not owned by user') },
    'wrong version': {
      cause: /SMTP|greeting|refuses|answer/i,
      ...says('CONNECT', 'HTTP/1.1 400 Bad Request\r\n\r\nthis is not SMTP'),
    },
    expired: {
      cause: /535|expired|authorisation +is refused/,
      ...says('AUTH', '535 5.7.8 the password has expired'),
    },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      if (how === 'expired') {
        world.settings.MAILER_SMTP_URL = 'smtp://course@127.0.0.1:2525'
        world.settings.MAILER_API_KEY = 'kX3vQ8tR2mZ7pL5w'
      }
      server.once = how === 'wrong version' || how === 'expired' || how === 'flapping'
      if (when === 'drain') await world.seed(60)
    },
    // No probe sends mail: what is refused in the middle of it is met by visitors, and is over ten minutes later.
    ...(['full', 'lying', 'wrong owner'].includes(how) && { use: usePlatform, moreMs: 720_000 }),
  }
}

/** Another server that the daemon probes at this address. */
function probed(world: World, address: string): void {
  world.settings.NEXT_PUBLIC_DATASTORE_URL = address
  world.settings.NEXT_PUBLIC_DATASTORE_ANON_KEY = 'kX3vQ8tR2mZ7pL5wkX3vQ8tR2mZ7pL5w'
}

function dns({ how, when }: Cell, world: World): Injection {
  const { names } = world
  const usual = names.answer
  const answers = (answer: typeof usual) => ({
    inject: () => {
      names.answer = answer
    },
    heal: () => {
      names.answer = usual
    },
  })
  const hows: Ways = {
    gone: {
      cause: /look(?:ed)? up|resol/,
      inject: () => {
        names.isGone = true
      },
      heal: () => {
        names.isGone = false
      },
    },
    slow: {
      cause: /look(?:ed)? up|resol/,
      inject: () => {
        names.lateMs = 12_000
      },
      heal: () => {
        names.lateMs = 0
      },
    },
    lying: { cause: /refused/, ...answers(() => '127.0.0.99') },
    flapping: {
      cause: /look(?:ed)? up|resol/,
      ...(() => {
        const { inject, heal } = answers(() => 'fails')
        return flapping(inject, heal)
      })(),
    },
    expired: { cause: /does not exist|resolve|not found/, ...answers(() => undefined) },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      probed(world, 'http://data.example.test:7000')
      if (when === 'drain') await world.seed()
    },
    // A name that was found is not looked up again for five minutes.
    early: true,
  }
}

const SHIFT = '/srv/clock-shift'
/** Node with another clock than the machine, which it reads from a file. */
const CLOCK = `import { readFileSync } from 'node:fs'
const Real = Date
let shift = 0
const read = () => { try { shift = Number(readFileSync('${SHIFT}', 'utf8')) || 0 } catch {} }
read()
setInterval(read, 200).unref()
globalThis.Date = class Date extends Real {
  constructor(...given) { given.length === 0 ? super(Real.now() + shift) : super(...given) }
  static now() { return Real.now() + shift }
}
`

async function clock(cell: Cell, world: World): Promise<Injection> {
  const { how, when } = cell
  const { prepare = () => {} } = await store({ ...cell, when: 'drain' }, world)
  writeFileSync('/srv/clock.mjs', CLOCK)
  const set = (ms: number) => () => writeFileSync(SHIFT, String(ms), { mode: 0o644 })
  const cause = /seconds (?:ahead of|behind)/
  const hows: Ways = {
    slow: { cause, inject: set(-3_600_000), heal: set(0) },
    lying: { cause, inject: set(7_200_000), heal: set(0) },
    flapping: { cause, ...flapping(set(7_200_000), set(0)) },
  }
  return {
    ...wayOf(hows, how),
    alerts: true,
    moreMs: 200_000,
    prepare,
    daemonEnv: { NODE_OPTIONS: '--import=/srv/clock.mjs' },
    daemon: when === 'drain' ? '--no-schedule' : '',
    command: `platformctl dispatch --drain --url http://127.0.0.1:3000 --env-file ${HOME}/.env`,
  }
}

/** A disk of its own for the data folder. */
/** Smaller, and it would be nearly full from the beginning. */
const mountDisk = () => {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=300m,mode=755', 'tmpfs', DATA])
  chownSync(DATA, SERVICE, SERVICE)
}
const fillDisk = () => {
  const { bavail, bsize } = statfsSync(DATA)
  try {
    execFileSync('fallocate', ['--length', String(bavail * bsize), `${DATA}/filler`])
    execFileSync('dd', ['if=/dev/zero', `of=${DATA}/filler`, 'bs=4096', 'oflag=append', 'conv=notrunc'], {
      stdio: 'ignore',
    })
  } catch {}
}
const freeDisk = () => rmSync(`${DATA}/filler`, { force: true })

function disk({ how, when }: Cell, world: World): Injection {
  const remount = (mode: string) => () => execFileSync('mount', ['-o', `remount,${mode}`, DATA])
  const calls = brokenCalls(
    how === 'slow'
      ? 'pwrite64,fsync,fdatasync:delay_enter=2000000'
      : how === 'lying'
        ? 'fsync,fdatasync:error=EIO'
        : 'pwrite64,fsync,fdatasync:error=EIO',
  )
  let prefix = ''
  // From the first call on, or of a process that has its files open.
  const broken: Pick<Injection, 'inject' | 'heal'> = {
    inject(running) {
      if (running !== undefined) return calls.attach(running.pid)
      prefix = calls.prefix
      return undefined
    },
    heal() {
      prefix = ''
      return calls.detach()
    },
  }
  const isOpen = when === 'running' || when === 'drain'
  const hows: Ways = {
    gone: isOpen
      ? { cause: /disk/, ...broken }
      : { cause: /read-only|takes no writes|cannot be written/, inject: remount('ro'), heal: remount('rw') },
    slow: { cause: /in time|slow|did not answer|disk/, ...broken },
    full: { cause: /full|room/, inject: fillDisk, heal: freeDisk },
    lying: { cause: /disk/, ...broken },
    flapping: { cause: /full|room/, ...flapping(fillDisk, freeDisk) },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      mountDisk()
      await world.seed(when === 'drain' ? 12 : 3)
      if (when === 'restore') await world.must(`platformctl db backup ${BACKUP} ${STORE_OPTIONS}`)
    },
    use: usePlatform,
    ridesOut: how === 'flapping' && when === 'drain',
    get daemonEnv() {
      return { PREFIX: prefix }
    },
    get command() {
      return `${prefix} ${when === 'drain' ? DRAIN : RESTORE}`
    },
  }
}

function memory({ how, when }: Cell, world: World): Injection {
  let last: Running | undefined
  let prefix = ''
  const kill = (running: Running | undefined) => {
    last = running
    running?.child.kill('SIGKILL')
    // In the middle of it, which is too soon over for a signal from outside.
    if (when === 'restore')
      prefix = `strace -f -o /dev/null -e trace=fsync -e inject=fsync:signal=KILL:when=${how === 'gone' ? 1 : 3}`
  }
  const heal = () => {
    prefix = ''
  }
  let heap = ''
  const small: Pick<Injection, 'inject' | 'heal'> = {
    inject(running) {
      if (running === undefined || when !== 'running') heap = '--max-old-space-size=8'
      // What it has it keeps; it gets no more.
      else execFileSync('prlimit', ['--pid', String(running.pid), '--as=200000000'])
    },
    heal() {
      heap = ''
    },
  }
  const hows: Ways = {
    gone: { cause: /unreachable|137|ended without/, inject: kill, heal },
    full: { cause: /memory|unreachable|ended without|allocation/i, ...small },
    flapping: { cause: /started \d+ times|137|ended without/, inject: kill, heal },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      await world.seed(when === 'drain' ? 12 : 3)
      if (when === 'restore') await world.must(`platformctl db backup ${BACKUP} ${STORE_OPTIONS}`)
    },
    use: () => (last === undefined ? usePlatform() : undefined),
    witness: how !== 'flapping' && (when === 'running' || (when === 'start' && how === 'gone')),
    // So long ago must the last start be.
    ...(how === 'flapping' && { moreMs: 950_000 }),
    isKilled: how !== 'full',
    early: how === 'full',
    get command() {
      return `${prefix} ${when === 'drain' ? DRAIN : RESTORE}`
    },
    get daemonEnv() {
      return heap === '' ? {} : { NODE_OPTIONS: heap }
    },
    get commandEnv() {
      return heap === '' ? {} : { NODE_OPTIONS: heap }
    },
  }
}

const JOURNAL = `${DATA}/platform-journal.jsonl`

function fileOwner({ how, when }: Cell, world: World): Injection {
  const give = (files: readonly string[], owner: number, mode: number) => {
    for (const file of files) {
      if (!existsSync(file)) continue
      chownSync(file, owner, owner)
      chmodSync(file, mode)
    }
  }
  const storeFiles = [FILE, `${FILE}-wal`, `${FILE}-shm`]
  const way = (files: readonly string[], mode: number): Pick<Injection, 'inject' | 'heal'> => ({
    inject: () => give(files, 0, mode),
    heal: () => give(files, SERVICE, files.includes(DATA) ? 0o755 : 0o600),
  })
  const cause = /belongs? to|owner|may not|permission|cannot be (?:written|read|opened)|not allowed|rights/
  const folder = way([DATA], 0o700)
  const hows: Ways = {
    gone: { cause, ...folder },
    'wrong owner': { cause, ...way(storeFiles, 0o600) },
    lying: { cause: /journal/, ...way([JOURNAL], 0o600) },
    flapping: { cause, ...flapping(() => folder.inject(undefined), folder.heal) },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      await world.seed(when === 'drain' ? 12 : 3)
      await world.must(`platformctl db migrate ${STORE_OPTIONS}`)
      await world.must(`platformctl db backup ${BACKUP} ${STORE_OPTIONS}`)
    },
    early: true,
    ...(when === 'running' && how === 'wrong owner' && { ask: `platformctl db status ${STORE_OPTIONS}` }),
    ...(when === 'drain' && how === 'lying' && { ask: `platformctl db verify ${STORE_OPTIONS}` }),
  }
}

function webhook({ how }: Cell, world: World): Injection {
  const status = (code: number) => ({
    cause: new RegExp(`webhook answered ${code}`),
    inject: () => {
      world.webhook.status = code
    },
    heal: () => {
      world.webhook.status = 204
    },
  })
  const { webhook: way, data } = world.relays
  const silent = /webhook did not answer/
  const hows: Ways = {
    gone: { cause: silent, inject: () => way.mode('refuse'), heal: () => way.mode('pass') },
    slow: {
      cause: silent,
      inject: () => way.mode('stall'),
      async heal() {
        await way.mode('refuse')
        await way.mode('pass')
      },
    },
    full: status(429),
    flapping: {
      cause: silent,
      ...flapping(
        () => way.mode('refuse'),
        () => way.mode('pass'),
      ),
    },
    'wrong owner': status(403),
    'wrong version': status(400),
    expired: status(410),
  }
  const { cause, inject, heal, moreMs } = wayOf(hows, how)
  return {
    cause,
    // The other channel tells of another fault meanwhile.
    by: 'mail',
    look: `platformctl alert list --all ${STORE_OPTIONS}`,
    moreMs: 120_000 + (moreMs ?? 0),
    prepare() {
      probed(world, 'http://127.0.0.1:7002')
      world.settings.ALERT_EMAIL_TO = 'ops@example.test'
    },
    async inject(running) {
      await inject(running)
      await data.mode('refuse')
    },
    async heal() {
      await heal()
      await data.mode('pass')
    },
  }
}

const definition = (more: object = {}) => {
  writeFileSync(DEFINITION, JSON.stringify({ preset: 'learning', name: 'Kiln', ...more }))
  chownSync(DEFINITION, SERVICE, SERVICE)
}
const DEFINITION = `${HOME}/platform.config.json`
const CONFIG = `--config ${DEFINITION}`

/** What a definition, or another one, is needed for. */
const defined = ({ when }: Cell, world: World) => ({
  async prepare() {
    definition()
    await world.seed(when === 'drain' ? 12 : 3)
    if (when === 'restore') await world.must(`platformctl db backup ${BACKUP} ${STORE_OPTIONS} ${CONFIG}`)
  },
  daemon: CONFIG,
  command: `${when === 'drain' ? DRAIN : RESTORE} ${CONFIG}`,
  early: true,
})

function definitions(cell: Cell, world: World): Injection {
  const unreadable = (owner: number, mode: number) => () => {
    chownSync(DEFINITION, owner, owner)
    chmodSync(DEFINITION, mode)
  }
  const hows: Ways = {
    gone: {
      cause: /platform\.config\.json.*(?:no such|not (?:there|found)|exist|missing)|no such file/,
      inject: () => rmSync(DEFINITION),
      heal: () => definition(),
    },
    lying: {
      cause: /probes\.ledger/,
      inject: () => definition({ probes: { ledger: { service: 'web', http: 7 } } }),
      heal: () => definition(),
    },
    'wrong owner': {
      cause: /platform\.config\.json/,
      inject: unreadable(0, 0o600),
      heal: unreadable(SERVICE, 0o644),
    },
    'wrong version': {
      cause: /prospects/,
      inject: () => definition({ prospects: { all: 'of a later version' } }),
      heal: () => definition(),
    },
  }
  return {
    ...wayOf(hows, cell.how),
    ...defined(cell, world),
    ...(cell.when === 'running' && { ask: `platformctl status ${STORE_OPTIONS}` }),
  }
}

function templates(cell: Cell, world: World): Injection {
  const MAILS = `${HOME}/mails`
  const WELCOME = `${MAILS}/welcome.md`
  const write = (more = '', body = 'Welcome.') => {
    mkdirSync(MAILS, { recursive: true })
    writeFileSync(
      WELCOME,
      `---\nsubject: Welcome\n${more}action: { label: Open, url: "{{startUrl}}" }\nslots: { startUrl: { type: url, sample: https://www.example.com } }\n---\n\n${body}\n`,
    )
    for (const file of [MAILS, WELCOME]) chownSync(file, SERVICE, SERVICE)
    chmodSync(WELCOME, 0o644)
  }
  const hows: Ways = {
    gone: {
      cause: /mails/,
      inject: () => rmSync(MAILS, { recursive: true }),
      heal: () => write(),
    },
    lying: { cause: /welcome\.md/, inject: () => write('', 'Welcome, {{nobody}}.'), heal: () => write() },
    'wrong owner': {
      cause: /welcome\.md/,
      inject() {
        chownSync(WELCOME, 0, 0)
        chmodSync(WELCOME, 0o600)
      },
      heal: () => write(),
    },
    'wrong version': {
      cause: /welcome\.md/,
      inject: () => write('prospects: all\n'),
      heal: () => write(),
    },
  }
  const usual = defined(cell, world)
  return {
    ...wayOf(hows, cell.how),
    ...usual,
    async prepare() {
      await usual.prepare()
      write()
      definition({ mails: './mails' })
    },
  }
}

async function certificate({ how, when }: Cell, world: World): Promise<Injection> {
  const { ours, present, heal } = world.certificates
  const foreign = await authority('Nobody that this machine trusts')
  const both = async (make: (host: string) => ReturnType<typeof ours.issue>) => {
    const [data, mailServer] = [await make('data.example.test'), await make('mail.example.test')]
    return () => present(data, mailServer)
  }
  const expired = await both((host) => ours.issue({ host, from: -90, to: -1 }))
  const old = { maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  const hows: Ways = {
    // No server name is known there, so no certificate is sent.
    gone: {
      cause: /encrypted|TLS|certificate/i,
      inject: () => present(NO_CERTIFICATE, NO_CERTIFICATE),
      heal,
    },
    lying: {
      cause: /for another name|another name|altname|not in the certificate|name/i,
      inject: await both(() => ours.issue({ host: 'elsewhere.example.test' })),
      heal,
    },
    flapping: { cause: /expired/, ...flapping(expired, heal) },
    'wrong owner': {
      cause: /not signed by an authority|trust|certificate/i,
      inject: await both((host) => foreign.issue({ host })),
      heal,
    },
    'wrong version': { cause: /encrypted|TLS|certificate/i, inject: () => present(old, old), heal },
    expired: { cause: /expired/, inject: expired, heal },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      probed(world, 'https://data.example.test:4430')
      world.settings.MAILER_SMTP_URL = 'smtps://mail.example.test:4650'
      world.mail.once = true
      if (when === 'drain') await world.seed(60)
    },
  }
}
/** A server with neither key nor certificate agrees with nobody. */
const NO_CERTIFICATE = {
  ciphers: 'ECDHE-RSA-AES128-GCM-SHA256',
  maxVersion: 'TLSv1.2',
  key: '',
  cert: '',
} as const

async function proxy({ how, when }: Cell, world: World): Promise<Injection> {
  const foreign = await authority('The proxy that reads along')
  const own = await foreign.issue({ host: 'data.example.test' })
  let answer: 'pass' | 'lying' | string = 'pass'
  const server = createHttpServer((_, response) => response.writeHead(400).end())
  server.on('connect', (asking, near) => {
    near.on('error', () => {})
    if (answer !== 'pass' && answer !== 'lying') return void near.end(answer)
    near.write('HTTP/1.1 200 Connection established\r\n\r\n')
    const [, port = '443'] = (asking.url ?? '').split(':')
    joined(near, answer === 'lying' ? connect(4440, '127.0.0.1') : connect(Number(port), OUTSIDE))
  })
  await listening(server, 3129)
  await listening(createHttpsServer(own, world.certificates.answerHttp), 4440)
  const way = await relay(3128, 3129)
  world.environment.HTTPS_PROXY = 'http://127.0.0.1:3128'
  world.environment.NO_PROXY = '127.0.0.1,localhost'
  const says = (text: string) => ({
    inject: () => {
      answer = text
    },
    heal: () => {
      answer = 'pass'
    },
  })
  const cause = /proxy|refused|in time|encrypted|connection/i
  const hows: Ways = {
    gone: { cause, inject: () => way.mode('refuse'), heal: () => way.mode('pass') },
    slow: {
      cause: /in time|did not answer|timed? ?out/i,
      moreMs: 60_000,
      inject: () => way.mode('stall'),
      async heal() {
        await way.mode('refuse')
        await way.mode('pass')
      },
    },
    full: { cause, ...says('HTTP/1.1 503 Too many connections\r\ncontent-length: 0\r\n\r\n') },
    lying: { cause: /not signed by an authority|certificate/i, ...says('lying') },
    flapping: {
      cause,
      ...flapping(
        () => way.mode('refuse'),
        () => way.mode('pass'),
      ),
    },
    'wrong owner': {
      cause,
      ...says('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n'),
    },
    'wrong version': { cause, ...says('\u0005\u0000\u0005\u0001') },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      probed(world, 'https://data.example.test:4430')
      delete world.settings.MAILER_SMTP_URL
      world.settings.MAILER_API_URL = 'https://data.example.test:4430/emails'
      world.settings.MAILER_API_KEY = 'kX3vQ8tR2mZ7pL5w'
      if (when === 'drain') await world.seed()
    },
    // A connection that it has let through stays.
    early: true,
  }
}

async function secondDaemon(cell: Cell, world: World): Promise<Injection> {
  const { how, when } = cell
  let other: Running | undefined
  const startOther = async (options: string, env: Record<string, string> = {}) => {
    other = world.begin(`exec platformctl daemon --data /srv/home/other ${options}`, env)
    await until(
      () => other?.isOver() === true || other?.output().includes('"event":"listening"') === true,
      60_000,
    )
  }
  const stopOther = async () => {
    other?.child.kill('SIGKILL')
    await other?.ended
  }
  const usual = defined(cell, world)
  const plain = {
    async prepare() {
      await world.seed(when === 'drain' ? 12 : 3)
      await world.must(`platformctl db backup ${BACKUP} ${STORE_OPTIONS}`)
    },
    early: true,
  }
  switch (how) {
    case 'slow': {
      let lock: Database.Database | undefined
      return {
        ...plain,
        cause: /another process|lock|is open/,
        use: usePlatform,
        inject() {
          lock = new Database(FILE, { timeout: 5000 })
          lock.exec('BEGIN EXCLUSIVE')
        },
        heal: () => lock?.close(),
      }
    }
    case 'lying':
      return {
        ...plain,
        async prepare() {
          await plain.prepare()
          world.settings.API_URL = 'http://127.0.0.1:8000'
        },
        cause: /b1.*b2|b2.*b1/s,
        daemon: '--service web --service agent',
        daemonEnv: { BUILD_STAMP: 'b1' },
        inject: () => startOther('--service api', { BUILD_STAMP: 'b2' }),
        heal: stopOther,
      }
    case 'wrong owner':
      return {
        ...plain,
        cause: /Kiln/,
        async prepare() {
          await plain.prepare()
          // The store gets its owner.
          const first = await world.daemon()
          first.child.kill('SIGTERM')
          await first.ended
          await world.must(`platformctl db backup /var/backups/own.sqlite.zst ${STORE_OPTIONS}`)
        },
        inject() {
          foreign = ` ${CONFIG}`
          definition()
        },
        heal() {
          foreign = ''
          rmSync(DEFINITION)
        },
        get daemon() {
          return foreign
        },
        get command() {
          return `${when === 'drain' ? DRAIN : RESTORE}${foreign}`
        },
        ...(when === 'running' && {
          ask: `platformctl daemon --data ${DATA} --web-port 0 --api-port 0 --agent-port 0 $([ -f ${DEFINITION} ] && echo "${CONFIG}" && exit; echo --help)`,
        }),
      }
    case 'wrong version': {
      const version = (by: number) => () => {
        const file = new Database(when === 'restore' ? NEWER : FILE)
        const now = Number(file.pragma('user_version', { simple: true }))
        file.pragma(`user_version = ${now + by}`)
        file.close()
      }
      const NEWER = '/var/backups/newer.sqlite'
      return {
        ...plain,
        cause: /newer/,
        async prepare() {
          await plain.prepare()
          await world.must(`platformctl db backup ${NEWER} ${STORE_OPTIONS}`)
        },
        inject: version(100),
        heal: version(-100),
        command: when === 'restore' ? RESTORE.replace(BACKUP, NEWER) : DRAIN,
        ...(when === 'running' && { ask: `platformctl dispatch --local --dry-run ${STORE_OPTIONS}` }),
      }
    }
    default:
      // Its ports are taken, or its folder is in use.
      return {
        ...usual,
        ...plain,
        cause: when === 'restore' ? /open in another process/ : /port \d+ of \w+ is in use/,
        daemon: '',
        command: RESTORE,
        ...(when === 'restore' || when === 'start'
          ? {
              inject: () => startOther(when === 'restore' ? `--data ${DATA}` : ''),
              heal: stopOther,
            }
          : {
              inject: (running) => {
                other = running
              },
              heal: stopOther,
              ask: `timeout 60 platformctl daemon --data /srv/home/other --no-schedule`,
            }),
      }
  }
}
let foreign = ''

type Ways = Partial<Record<Cell['how'], Pick<Injection, 'cause' | 'inject' | 'heal' | 'moreMs'>>>

function wayOf(ways: Ways, how: Cell['how']) {
  const way = ways[how]
  if (way === undefined) throw new Error(`nothing injects "${how}"`)
  return way
}

const COMPONENTS: Readonly<
  Record<Cell['component'], (cell: Cell, world: World) => Injection | Promise<Injection>>
> = {
  ...{ store, mail, DNS: dns, clock, disk, memory, webhook, template: templates, certificate, proxy },
  ...{ 'file owner': fileOwner, definition: definitions, 'second daemon': secondDaemon },
}

export const injectionOf = (cell: Cell, world: World) => COMPONENTS[cell.component](cell, world)
