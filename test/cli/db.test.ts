import { chown, copyFile, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import path from 'node:path'
import { generateIdentity, identityToRecipient } from 'age-encryption'
import Database from 'better-sqlite3'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { currentOperator } from '../../src/cli/main.ts'
import { writeRecord } from '../../src/core/daemon-record.ts'
import { openAnalyticsStore } from '../../src/core/store/open.ts'
import { folderWith } from '../support/folder.ts'
import { run } from '../support/run.ts'

/** Runs `platformctl db …` in a folder of its own. */
async function operator(files: Readonly<Record<string, string>> = {}) {
  const cwd = await folderWith(files)
  return { cwd, db: (...args: string[]) => run(['db', ...args], { cwd }) }
}

test('migrate makes the store, status describes it, verify passes and is remembered', async () => {
  const { db, cwd } = await operator()
  expect(await db('migrate')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^migrated from schema 0 to \d+\n$/),
  })
  expect(await db('migrate')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^nothing to do: schema \d+\n$/),
  })
  expect((await db('status')).stdout).toMatch(
    /schema {4}\d+ \(up to date\)\nsize .*\nrows .*meta 1\nverified {2}never/,
  )
  expect(await db('verify')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('0 subscriptions are consistent'),
  })
  expect((await db('status')).stdout).toMatch(/verified {2}\d+ s ago/)
  expect(JSON.parse((await db('status', '--format', 'json')).stdout)).toMatchObject({
    version: 1,
    store: { kind: 'sqlite' },
  })
  const database = new Database(path.join(cwd, '.platformctl', 'platform.sqlite'))
  database.exec(
    `INSERT INTO subscription (id, identity, address, state, created_at) VALUES ('a', 'a', 'a', 'confirmed', 1)`,
  )
  database.close()
  expect(await db('verify')).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/✖ subscription a: [\s\S]*✖ failed; the file itself is sound\n$/),
  })
})

test('status says of a newer schema whether this build can run on it, and the plan of one that it cannot is refused', async () => {
  const { db, cwd } = await operator()
  await db('migrate')
  const database = new Database(path.join(cwd, '.platformctl', 'platform.sqlite'))
  database.exec('PRAGMA user_version = 1')
  expect((await db('status')).stdout).toMatch(/schema {4}1 \(this build brings \d+: platformctl db migrate\)/)
  database.exec(`PRAGMA user_version = 99; UPDATE meta SET value = '99:1' WHERE name = 'readable_from'`)
  expect((await db('status')).stdout).toMatch(
    /schema {4}99 \(newer than this build’s \d+, which can run on it\)/,
  )
  expect(await db('migrate', '--plan')).toMatchObject({ code: 0, stdout: 'nothing to do\n' })
  database.exec(`DELETE FROM meta WHERE name = 'readable_from'`)
  database.close()
  expect((await db('status')).stdout).toMatch(/which cannot run on it: run the version that wrote it/)
  for (const args of [['migrate', '--plan'], ['migrate']])
    expect(await db(...args)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/was written by a newer platformctl/),
    })
})

test('a backup and its restore, by the command line', async () => {
  const { db, cwd } = await operator()
  await db('migrate')
  expect(await db('backup', 'b.sqlite.zst')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^b\.sqlite\.zst: [\d.]+ k?B, schema \d+, rows: meta 4\nchecked, packed/),
  })
  expect((await db('backup', 'b.sqlite.gz')).stdout).toContain('\nchecked, packed')
  const refused = await db('restore', 'b.sqlite.zst')
  expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/--force replaces it/) })
  expect((await db('restore', 'b.sqlite.zst', '--force')).stdout).toMatch(
    /kept as .*platform\.sqlite\.before-/,
  )
  const audit = JSON.parse((await db('audit', '--format', 'json')).stdout)
  expect(audit.entries).toMatchObject([{ action: 'restore', details: 'b.sqlite.zst' }])
  const beside = ['--journal', '.platformctl/platform-journal.jsonl']
  expect((await db('restore', 'b.sqlite.zst', '--data', 'third', ...beside)).stdout).toMatch(
    /^the journal ends at \d{4}-.*Z: people who left later are mailed again$/m,
  )
  // What is given in place of a file may be the secret itself.
  for (const [option, given, said] of [
    ['--identity', 'AGE-SECRET-KEY-1CANARY', 'AGE-SECRET-KEY-…'],
    ['--env-file', 'MAILER_API_KEY=canary', 'MAILER_API_KEY=…'],
  ] as const)
    expect(await db('restore', 'b.sqlite.zst', '--data', 'elsewhere', option, given)).toMatchObject({
      code: 2,
      stderr: `platformctl: cannot read ${said}: there is no such file; check the path.\n`,
    })
  for (const option of ['--journal', '--sent-from']) {
    const named = (file: string) => db('restore', 'b.sqlite.zst', '--data', 'elsewhere', option, file)
    expect(await named('gone')).toMatchObject({
      code: 2,
      stderr: 'platformctl: cannot read gone: there is no such file; check the path.\n',
    })
    expect(await named('.platformctl')).toMatchObject({ code: 2, stderr: expect.stringMatching(/a folder/) })
  }
  expect((await db('restore', 'b.sqlite.zst', '--data', 'elsewhere', '--without-journal')).stdout).toMatch(
    /^restored b\.sqlite\.zst/,
  )
  expect(await readdir(path.join(cwd, 'elsewhere'))).toEqual(['platform-journal.jsonl', 'platform.sqlite'])
})

test.skipIf(process.getuid?.() !== 0)(
  'what root backs up or writes out belongs to the owner of the store, and to nobody else',
  async () => {
    const { db, cwd } = await operator()
    await db('migrate')
    await chown(path.join(cwd, '.platformctl', 'platform.sqlite'), 1234, 1234)
    expect(await db('backup', 'b.sqlite.zst')).toMatchObject({ code: 0 })
    expect(await db('journal', 'j.jsonl')).toMatchObject({ code: 0 })
    for (const file of ['b.sqlite.zst', 'j.jsonl'])
      expect(await stat(path.join(cwd, file))).toMatchObject({ uid: 1234, gid: 1234, mode: 0o100600 })
    // So does a store that is restored elsewhere, with each folder that is made for it.
    await mkdir(path.join(cwd, 'theirs'))
    await chown(path.join(cwd, 'theirs'), 1234, 1234)
    await db('restore', 'b.sqlite.zst', '--data', 'theirs/new/data', '--without-journal')
    for (const made of ['new', 'new/data', 'new/data/platform.sqlite'])
      expect(await stat(path.join(cwd, 'theirs', made))).toMatchObject({ uid: 1234, gid: 1234 })
    expect(await db('journal', 'j.jsonl')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/j\.jsonl exists and was left as it is/),
    })
  },
)

/** A store with a file of events beside it. */
async function withEvents() {
  const it = await operator()
  await it.db('migrate')
  const file = path.join(it.cwd, '.platformctl', 'platform.sqlite')
  const store = await openAnalyticsStore({ kind: 'sqlite', file }, { table: 'visits' })
  const append = (receivedAt: number) =>
    store.append({
      id: undefined,
      receivedAt,
      events: [],
      counts: [{ day: '2026-11-21', kind: 'circuit.run', count: 3 }],
    })
  await append(1)
  onTestFinished(() => store.close())
  return { ...it, store, append, data: path.dirname(file) }
}

test('visitors’ events are backed up during writes, verified, and restored together with the store', async () => {
  const { db, cwd, store, append, data } = await withEvents()
  expect(await db('backup', 'b.sqlite.zst')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^b\.sqlite\.zst: .*\nb-analytics\.sqlite\.zst: [\d.]+ k?B, events of visitors, rows: visits 1\b[^\n]*\nchecked/,
    ),
  })
  expect((await db('verify')).stdout).toMatch(/✔ the file of analytics is sound\n$/)
  const [own, second] = [await generateIdentity(), await generateIdentity()]
  await writeFile(path.join(cwd, 'keys'), `# ours\r\n ${await identityToRecipient(own)}\r\n`)
  await writeFile(path.join(cwd, 'id'), `${own}\n`)
  const to = ['--recipient', await identityToRecipient(second), '--recipient', 'keys']
  await db('backup', 'e.sqlite.age', ...to)
  // Each recipient can read it, also one that is named in a file.
  const opening = ['--identity', 'id', '--without-journal', '--data', 'opened']
  expect(await db('restore', 'e.sqlite.age', ...opening)).toMatchObject({ code: 0 })
  for (const name of ['e.sqlite.age', 'e-analytics.sqlite.age'])
    expect((await readFile(path.join(cwd, name), 'latin1')).slice(0, 21)).toBe('age-encryption.org/v1')
  await append(2)
  await store.close()
  const before = (await readdir(data)).sort()
  expect(await db('restore', 'b.sqlite.zst')).toMatchObject({ code: 1, stdout: '' })
  expect((await readdir(data)).sort()).toEqual(before)
  expect((await db('restore', 'b.sqlite.zst', '--force')).stdout).toMatch(
    /restored b-analytics\.sqlite\.zst: events of visitors, rows: visits 1\b[^\n]*\nthe file before it is kept as .*platform-analytics\.sqlite\.before-/,
  )
  expect((await db('restore', 'b.sqlite.zst', '--data', 'elsewhere', '--without-journal')).code).toBe(0)
  expect((await readdir(path.join(cwd, 'elsewhere'))).sort()).toEqual([
    'platform-analytics.sqlite',
    'platform-journal.jsonl',
    'platform.sqlite',
  ])
})

test('a backup of events that is damaged keeps the store from being replaced, too', async () => {
  const { db, cwd, data, store } = await withEvents()
  await store.close()
  await db('backup', 'b.sqlite.zst')
  await writeFile(path.join(cwd, 'b-analytics.sqlite.zst'), 'no backup')
  const before = (await readdir(data)).sort()
  expect(await db('restore', 'b.sqlite.zst', '--force')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/b-analytics\.sqlite\.zst is not a backup/),
  })
  expect((await readdir(data)).sort()).toEqual(before)
  // A store's backup that lies in the place of the other.
  await db('backup', 'c.sqlite', '--no-analytics')
  expect(await readdir(cwd)).not.toContain('c-analytics.sqlite')
  await copyFile(path.join(cwd, 'c.sqlite'), path.join(cwd, 'c-analytics.sqlite'))
  expect((await db('restore', 'c.sqlite', '--force')).stderr).toMatch(
    /the backup of a store, not of analytics/,
  )
})

test('events that cannot be backed up leave a complete backup of the store, and exit 1', async () => {
  const { db, cwd } = await withEvents()
  await writeFile(path.join(cwd, 'b-analytics.sqlite'), 'precious')
  expect(await db('backup', 'b.sqlite')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /b\.sqlite is complete, but the events of visitors were not backed up: .*exists and was left as it is/,
    ),
  })
  expect((await db('restore', 'b.sqlite', '--data', 'elsewhere')).code).toBe(1)
  expect(await readFile(path.join(cwd, 'b-analytics.sqlite'), 'utf8')).toBe('precious')
})

test('verify finds a damaged file of events', async () => {
  const { db, data, store } = await withEvents()
  await store.close()
  const file = path.join(data, 'platform-analytics.sqlite')
  const bytes = await readFile(file)
  await writeFile(file, Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(bytes.length - 4096, 7)]))
  expect(await db('verify')).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/✔ the file is sound[\s\S]*✖ failed; the file of analytics is damaged/),
  })
})

test('the plan of a store that does not exist makes none', async () => {
  const { db, cwd } = await operator()
  expect(await db('migrate', '--plan')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /there is no store at [\s\S]*\bset STORE_URL, or\s+start the daemon, which makes it\.\n$/,
    ),
  })
  expect(await readdir(cwd)).toEqual([])
})

test('a store that this user may not look at is not called missing', async () => {
  const { db, cwd } = await operator()
  // Root may look at everything, but not through a link to itself.
  await symlink('platform.sqlite', path.join(cwd, 'platform.sqlite'))
  const { code, stderr } = await db('status', '--data', '.')
  expect(code).toBe(2)
  expect(stderr).toMatch(/platform\.sqlite cannot be opened \(ELOOP\): [^\n]*run this as the daemon’s user/)
})

test.each([
  ['status --data .', 2, /is not an SQLite file/],
  [
    'restore missing.zst',
    2,
    /^platformctl: cannot read missing.zst: there is no such file; check the path\.\n$/,
  ],
  ['backup b.tar', 2, /a backup is no \.tar file: end its name in \.sqlite\.zst, /],
  ['backup -', 2, /: a backup is read back, so it cannot go to standard output: name a file\.\n$/],
  ['restore pipe --data other', 2, /: cannot read pipe: it is a pipe or a device; name a file\.\n$/],
  ['backup file/copy.sqlite', 1, /\/file is a file, not a folder: name another place\.\n$/],
  ['backup none/copy.sqlite', 1, /none does not exist: make the folder/],
  ['restore folder --data other', 2, /: cannot read folder: it is a folder; name the file in it\.\n$/],
  ['restore loop --data other', 2, /: a file has a name that the system cannot follow: correct it\.\n$/],
  [`backup ${'x'.repeat(300)}`, 2, /: a file has a name that the system cannot follow: correct it\.\n$/],
  ['audit --limit 0', 2, /--limit/],
])(
  'db %s is exit %d, one sentence that names what is wrong, and nothing is made',
  async (words, code, said) => {
    const { db, cwd } = await operator({
      'platform.sqlite': 'a text file and no database',
      file: '',
      'folder/a': '',
    })
    await execa('mkfifo', [path.join(cwd, 'pipe')])
    await symlink('loop', path.join(cwd, 'loop'))
    await db('migrate')
    const before = await readdir(cwd)
    expect(await db(...words.split(' '))).toMatchObject({
      code,
      stdout: '',
      stderr: expect.stringMatching(said),
    })
    expect(await readdir(cwd)).toEqual(before)
  },
)

test('a backup whose name has the ending of no other format is SQLite', async () => {
  const { db } = await operator()
  await db('migrate')
  for (const name of ['b.sqlite3', 'b.db', 'b.bak', 'b', 'b.sqlite'])
    expect((await db('backup', name)).stdout).toMatch(/\nchecked, read back and compared\n$/)
  expect((await db('restore', 'b.bak', '--force')).code).toBe(0)
})

test('a malformed STORE_URL is refused by every command that acts on a store, and no other store is opened', async () => {
  const { db, cwd } = await operator()
  await db('migrate')
  for (const value of ['postgress://user:canary@db/x', 'sqlite:', '/data/x'])
    for (const args of [
      ['db', 'status'],
      ['db', 'migrate'],
      ['course', 'status'],
      ['dispatch', '--local', '--dry-run'],
      ['analytics', 'summary'],
    ]) {
      const env = { STORE_URL: value, ANALYTICS_DATASTORE_TABLE: 'events' }
      const { code, stderr, stdout } = await run(args, { cwd, env })
      expect(code).toBe(2)
      expect(stderr).toMatch(
        /^platformctl: STORE_URL is not the address of a store, .*sqlite:PATH or postgres:\/\/USER.*\n$/,
      )
      expect(stderr + stdout).not.toContain('canary')
    }
})

test.each([
  ['STORE_URL', ['db', 'status']],
  ['STORE_URL', ['course', 'status']],
  ['STORE_URL', ['analytics', 'summary']],
  // A supervisor that leaves a daemon of wrong usage alone starts this one again.
  ['STORE_URL', ['daemon', '--web-port', '0', '--api-port', '0', '--agent-port', '0', '--data', 'data']],
  ['STORE_URL', ['db', 'copy', '--to', 'sqlite:new.sqlite']],
  ['STORE_URL', ['db', 'copy', '--to', 'sqlite:old.sqlite', '--verify']],
  ['--to', ['db', 'copy', '--to', 'postgres://user:canary@127.0.0.1:1/none']],
])('an unreachable server is exit code 3, and named as %s by %j', async (name, args) => {
  const { cwd, db } = await operator({ 'old.sqlite': '' })
  const STORE_URL = 'postgres://user:canary@127.0.0.1:1/none'
  if (name === '--to') await db('migrate')
  const env = { ANALYTICS_DATASTORE_TABLE: 'visits', ...(name === 'STORE_URL' && { STORE_URL }) }
  const { code, stderr } = await run(args, { cwd, env })
  expect(code).toBe(3)
  expect(stderr).toMatch(new RegExp(`^platformctl: The PostgreSQL of ${name} refused the connection`))
  expect(stderr).not.toContain('canary')
})

test('audit shows who did what, when and from where, and no erased address', async () => {
  const { cwd, db } = await operator()
  await db('migrate')
  expect(await db('audit')).toMatchObject({ code: 0, stdout: 'no operator has changed anything yet\n' })
  const erase = (address: string, ...more: string[]) =>
    run(['course', 'erase', address, '--yes', ...more], {
      cwd,
      operator: () => ({ name: 'ops', place: 'box-1' }),
    })
  const erased = await erase('ada@example.com', '--format', 'json')
  expect({ ...erased, stdout: JSON.parse(erased.stdout) }).toMatchObject({
    code: 0,
    stdout: { version: 1, erased: false, related: 0, bytesGone: true, suppressed: true },
  })
  expect((await db('audit')).stdout).toMatch(
    /^when +who +from +action +what +details\n\d{4}-\S+Z +ops +box-1 +erase +[\w-]{20,}\n$/,
  )
  const { stdout } = await db('audit', '--format', 'json')
  expect(JSON.parse(stdout)).toMatchObject({ version: 1, entries: [{ action: 'erase', who: 'ops' }] })
  // Not the name alone: the subject is a hash, which may have those three letters.
  expect(stdout).not.toMatch(/ada(?:@|%40)/)
  await erase('bob@example.com')
  const one = await db('audit', '--limit', '1', '--format', 'json')
  expect(JSON.parse(one.stdout).entries).toHaveLength(1)
})

test('an erasure that cannot reach the journal removes the rows, and is not said to be complete', async () => {
  const { cwd, db } = await operator()
  await db('migrate')
  await mkdir(path.join(cwd, '.platformctl', 'platform-journal.jsonl'))
  await run(['course', 'enrol', 'ada@example.com'], { cwd })
  const erased = await run(['course', 'erase', 'Ada@Example.com', '--yes', '--format', 'json'], { cwd })
  expect({ ...erased, stdout: JSON.parse(erased.stdout) }).toMatchObject({
    code: 1,
    stdout: { erased: true, bytesGone: false },
    stderr: expect.stringMatching(/their bytes may stay in the file/),
  })
  expect(await run(['course', 'show', 'ada@example.com'], { cwd })).toMatchObject({ code: 1 })
})

test('the audit log names the user behind sudo, and where SSH came from', () => {
  expect(currentOperator({ SUDO_USER: 'ada', SSH_CONNECTION: '192.0.2.1 5000 192.0.2.2 22' })).toEqual({
    name: expect.stringMatching(/^\S.* \(sudo by ada\)$/),
    place: expect.stringMatching(/^\S+ \(ssh from 192\.0\.2\.1\)$/),
  })
  expect(currentOperator({ SSH_CONNECTION: 'no address' }).place).not.toContain('ssh')
})

test('migrate takes the settings of a container, or a store that is set, at their word, whatever the folder’s daemon had', async () => {
  const { db, cwd } = await operator({ '.env': 'STORE_URL=sqlite:next.sqlite\n' })
  await mkdir(path.join(cwd, '.platformctl'))
  const record = (host: string, envFiles: readonly string[] = []) =>
    writeRecord(path.join(cwd, '.platformctl'), {
      version: 1,
      pid: 1,
      host,
      startedAt: '2026-11-22T00:00:00.000Z',
      build: null,
      store: { kind: 'postgres', location: 'db.example.com:5432/platform' },
      envFiles,
      schedule: true,
      urls: {},
    })
  record(hostname())
  const folder = ['--data', '.platformctl']
  // As the containers of `deploy init compose` after their STORE_URL was set: they start once this has passed.
  expect(await db('migrate', ...folder, '--env-file', '.env')).toMatchObject({ code: 0 })
  expect(await readdir(cwd)).toContain('next.sqlite')
  // What acts on what is in a store asks which is meant.
  expect(await db('verify', ...folder, '--env-file', '.env')).toMatchObject({ code: 2, stdout: '' })
  // A person may have forgotten it.
  expect(await db('migrate', ...folder)).toMatchObject({ code: 2, stdout: '' })
  record('before', ['/etc/platformctl/env'])
  expect(await db('migrate', ...folder)).toMatchObject({ code: 2, stdout: '' })
  // As the containers after STORE_URL was removed: each has a host name of its own, and its environment is the next daemon's.
  record('before')
  expect(await db('migrate', ...folder)).toMatchObject({ code: 0 })
  expect(await readdir(path.join(cwd, '.platformctl'))).toContain('platform.sqlite')
  expect(await db('verify', ...folder)).toMatchObject({ code: 2, stdout: '' })
})
