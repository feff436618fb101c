import { mkdir, readdir, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import path from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { generateIdentity, identityToRecipient } from 'age-encryption'
import Database from 'better-sqlite3'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { secret } from '../../../src/core/secret.ts'
import { copyStore, openAnalyticsStore, openMaintenance, restoreStore } from '../../../src/core/store/open.ts'
import { bin } from '../../support/cli.ts'
import { command } from '../../support/in-process.ts'
import { newDatabase, newFile } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21)

let plain: Buffer | undefined

/** A store, and a plain backup that `change` makes hostile: its own, or that of another new store. */
async function backedUp(own = false) {
  const file = await newFile('platform.sqlite')
  const folder = path.dirname(file)
  const at = (name: string) => path.join(folder, name)
  const address = { kind: 'sqlite', file } as const
  const maintenance = await openMaintenance(address)
  onTestFinished(() => maintenance.close())
  if (own || plain === undefined) await maintenance.backup(at('b.sqlite'), NOW)
  else await writeFile(at('b.sqlite'), plain)
  plain ??= await readFile(at('b.sqlite'))
  const change = (...steps: string[]) => {
    const database = new Database(at('b.sqlite'))
    database.unsafeMode()
    for (const step of steps) database.exec(step)
    database.close()
  }
  const restore = (from = 'b.sqlite', options: Partial<Parameters<typeof restoreStore>[1]> = {}) =>
    restoreStore(
      { kind: 'sqlite', file: at('new/platform.sqlite') },
      { from: at(from), force: false, now: NOW, withoutJournal: true, ...options },
    )
  return { at, folder, maintenance, change, restore, address }
}

const ENDLESS = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i FROM n)'

test.each([
  [
    'an endless view in the place of a table',
    [
      'DROP TABLE suppression',
      `CREATE VIEW suppression AS ${ENDLESS} SELECT i AS hash, i AS created_at FROM n`,
    ],
    'the view suppression',
  ],
  [
    'an endless view in the place of the one that says its version',
    ['DROP TABLE meta', `CREATE VIEW meta AS ${ENDLESS} SELECT i AS name, i AS value FROM n`],
    'the view meta, which no platformctl made. Take a file that you trust, or correct that',
  ],
  [
    'a trigger that undoes unsubscribing',
    [
      "CREATE TRIGGER undo AFTER UPDATE ON subscription BEGIN UPDATE subscription SET state = 'confirmed'; END",
    ],
    'the trigger undo, which no platformctl made',
  ],
  [
    'an index whose expression takes for ever',
    ['CREATE INDEX slow ON suppression (hex(zeroblob(100000000)))'],
    'the index slow, which no platformctl made',
  ],
  [
    'a table with another constraint',
    [
      'DROP TABLE handled_hour',
      'CREATE TABLE handled_hour (hour TEXT PRIMARY KEY CHECK (length(hex(zeroblob(500000000))) > 0)) STRICT, WITHOUT ROWID',
    ],
    'the table handled_hour, which no platformctl made',
  ],
  [
    'a missing table',
    ['DROP TABLE handled_hour'],
    'no table handled_hour. Take a file that you trust, or correct that',
  ],
])('a file with %s is not restored, nor copied, and nothing of it is read', async (_, steps, what) => {
  const { at, change, restore, folder } = await backedUp()
  change(...steps)
  const before = await readdir(folder)
  await expect(restore()).rejects.toThrow(`it has ${what}`)
  // Nothing of the file is copied before it is checked, so there need be no server.
  const nowhere = { kind: 'postgres', url: secret('postgres://nobody@127.0.0.1:1/none') } as const
  await expect(copyStore({ kind: 'sqlite', file: at('b.sqlite') }, nowhere, NOW)).rejects.toThrow(
    `b.sqlite was not copied: it has ${what}`,
  )
  expect((await readdir(folder)).sort()).toEqual(before.sort())
})

test.each([
  [
    'an endless view',
    `CREATE VIEW platformctl.pace AS ${ENDLESS} SELECT i::text AS name, 1 AS next_us FROM n`,
  ],
  [
    'a table that shows each reader other rows',
    'CREATE TABLE platformctl.pace (name text, next_us bigint); ALTER TABLE platformctl.pace ENABLE ROW LEVEL SECURITY',
  ],
])('a database with %s in the place of a table is not copied', async (_, step) => {
  const { at } = await backedUp()
  const from = await newDatabase('a store')
  await from.query(`DROP TABLE platformctl.pace; ${step}`)
  await expect(copyStore(from.address, { kind: 'sqlite', file: at('copy.sqlite') }, NOW)).rejects.toThrow(
    'the database was not copied: platformctl.pace is not the table that platformctl made',
  )
  expect(await readdir(at(''))).not.toContain('copy.sqlite')
})

test('the store named for its sent records is read only if a build of ours made it', async () => {
  const { at, change } = await backedUp()
  change(
    'DROP TABLE subscription',
    `CREATE VIEW subscription AS ${ENDLESS} SELECT i AS id, i AS sent_days FROM n`,
  )
  const restored = await backedUp()
  await expect(restored.restore('b.sqlite', { sentFrom: at('b.sqlite') })).rejects.toThrow(
    'b.sqlite was not read: it has the view subscription',
  )
})

test('a backup that says nothing that can be a time of itself is dated by its file', async () => {
  const { change, restore } = await backedUp()
  for (const said of ['soon', '1e300']) {
    change(`INSERT OR REPLACE INTO meta (name, value) VALUES ('backup_at', '${said}')`)
    await expect(restore('b.sqlite', { withoutJournal: false })).rejects.toThrow(
      /b\.sqlite was made at 2\d{3}-\d\d-\d\dT.*, and there is no .*: people who unsubscribed/,
    )
  }
})

test('lines of a journal that no build of ours wrote change nothing, and the others count', async () => {
  const { at, maintenance, restore } = await backedUp(true)
  const own = (await maintenance.journal(NOW)).map((entry) => JSON.stringify(entry))
  const time = { at: NOW }
  const hostile = [
    ...['null', '[]', '7', '{"what":"unsubscribed"', `${'['.repeat(200_000)}`],
    ...[
      { what: 'unsubscribed', ...time },
      { what: 'undone', ...time, id: 'a', enrolment: 'one' },
      { what: 'erased', ...time, hash: 'h' },
      { what: 'erased', ...time, hash: 'h', rows: { invites: [{}], logins: [] } },
      { what: 'suppressed', ...time, identity: 7, suppression: {} },
      {
        what: 'suppressed',
        ...time,
        identity: 'a@x.example',
        suppression: { cause: 'hard-bounce', at: 1e300 },
      },
      { what: 'released', at: 'soon', identity: 'a@x.example' },
      { what: 'audited', ...time, entry: null },
      { what: 'anchor', at: 1e300, id: 'x' },
      { what: '__proto__', ...time },
    ].map((entry) => JSON.stringify(entry)),
  ]
  await writeFile(at('j.jsonl'), [...hostile, ...own].join('\n'))
  await writeFile(at('only.jsonl'), hostile.join('\n'))
  const by = (journal: string) => restore('b.sqlite', { withoutJournal: false, journal: at(journal) })
  await expect(by('only.jsonl')).rejects.toThrow('only.jsonl is not the journal of its store')
  // After the backup they may have said who left.
  await writeFile(at('after.jsonl'), [...own, ...hostile].join('\n'))
  await expect(by('after.jsonl')).rejects.toThrow('10 lines of the journal cannot be read')
  const { replayed } = await by('j.jsonl')
  expect(Object.values(replayed)).toEqual(Array(7).fill(0))
})

test('refuses to restore a backup of events with a foreign view, and the store beside it', async () => {
  const { at, address, restore } = await backedUp()
  await (await openAnalyticsStore(address, { table: 'events' })).close()
  const database = new Database(at('platform-analytics.sqlite'))
  database.exec(`VACUUM INTO '${at('b-analytics.sqlite')}'`)
  database.close()
  const copy = new Database(at('b-analytics.sqlite'))
  copy.exec(
    `DROP VIEW events_daily; CREATE VIEW events_daily AS ${ENDLESS} SELECT i AS day, i AS kind, i AS count FROM n`,
  )
  copy.close()
  await expect(restore()).rejects.toThrow('it has the view events_daily, which no platformctl made')
  expect(await readdir(at(''))).not.toContain('new')
})

test('a schema of a newer build is refused before its own table is asked whether it can be read', async () => {
  const { change, restore } = await backedUp()
  change(
    'DROP TABLE meta',
    `CREATE VIEW meta AS ${ENDLESS} SELECT i AS name, i AS value FROM n`,
    'PRAGMA user_version = 9999',
  )
  await expect(restore()).rejects.toThrow(/written by a newer platformctl .*: use that version/)
})

test.each([
  ['zstd', zstdCompressSync],
  ['gzip', (image: Buffer) => gzipSync(image, { level: 1 })],
] as const)(
  'a few kilobytes of %s that unpack to more than a store can be are stopped, and leave nothing',
  async (_, packed) => {
    const { at, restore, folder } = await backedUp()
    const image = Buffer.concat([await readFile(at('b.sqlite')), Buffer.alloc(17_100 * 4096)])
    // The header declares all of it, as a bomb would.
    image.writeUInt32BE(image.length / image.readUInt16BE(16), 28)
    await writeFile(at('bomb'), packed(image))
    expect((await stat(at('bomb'))).size).toBeLessThan(400_000)
    const before = await readdir(folder)
    await expect(restore('bomb')).rejects.toThrow(/unpacks to more than a store can be/)
    expect((await readdir(folder)).sort()).toEqual(before.sort())
  },
)

test('refuses a store that claims to be larger than the disk before writing anything', async () => {
  const { at, restore } = await backedUp()
  const image = await readFile(at('b.sqlite'))
  image.writeUInt32BE(0xfffffffe, 28)
  await writeFile(at('huge.zst'), zstdCompressSync(image))
  await expect(restore('huge.zst')).rejects.toThrow(
    /the backup unpacks to 17\d+ MB, and the disk it is restored to has room for \d+ MB/,
  )
})

test('a store with a trigger of somebody else is not backed up, because it could not be restored', async () => {
  const { at, maintenance, address, folder } = await backedUp(true)
  const database = new Database(address.file)
  database.exec(
    'CREATE TRIGGER spy AFTER INSERT ON subscription BEGIN UPDATE meta SET value = new.address; END',
  )
  database.close()
  const before = await readdir(folder)
  await expect(maintenance.backup(at('c.sqlite'), NOW)).rejects.toThrow(
    /has the trigger spy, and a restore would refuse it: drop what platformctl did not make/,
  )
  expect((await readdir(folder)).sort()).toEqual(before.sort())
})

test.skipIf(process.platform === 'win32')('a backup follows no link under its name', async () => {
  const { at, folder, maintenance } = await backedUp()
  await symlink(at('elsewhere'), at('link.sqlite'))
  await expect(maintenance.backup(at('link.sqlite'), NOW)).rejects.toThrow(/exists and was left as it is/)
  expect(await readdir(folder)).not.toContain('elsewhere')
})

test.skipIf(process.platform === 'win32')(
  'a killed backup leaves no file that others can read, and the next one removes it, but not what one that runs has',
  async () => {
    const { at, folder, address } = await backedUp(true)
    const database = new Database(address.file)
    database.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
    INSERT INTO suppression SELECT hex(randomblob(32)), i FROM n`)
    database.close()
    const busy = `.platformctl-${hostname().replace(/[^\w.]/g, '_')}-${process.ppid}-abcdef`
    await mkdir(at(busy))
    const before = new Set(await readdir(folder))
    const backup = [bin, 'db', 'backup', at('c.sqlite.zst'), '--data', folder]
    const open = 'umask 000; exec "$0" -- "$@"'
    const running = execa('sh', ['-c', open, process.execPath, ...backup], { reject: false })
    const made = async () =>
      (await readdir(folder)).filter((name) => !before.has(name) && !/-(?:wal|shm)$/.test(name))
    await expect.poll(made, { interval: 2 }).not.toEqual([])
    running.kill('SIGKILL')
    expect((await running).signal).toBe('SIGKILL')
    const left = await made()
    expect(left).toEqual([expect.stringMatching(/^\.platformctl-.*-\d+-\w{6}$/)])
    expect((await stat(at(String(left[0])))).mode & 0o777).toBe(0o700)
    for (const file of await readdir(at(String(left[0]))))
      expect((await stat(path.join(at(String(left[0])), file))).mode & 0o777).toBe(0o600)
    const next = await command(['db', 'backup', 'd.sqlite.zst', '--data', folder], { cwd: folder })
    expect(next).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await made()).toEqual(['d.sqlite.zst'])
    expect(await readdir(folder)).toContain(busy)
  },
)

/** A pair of keys of age. */
async function keys() {
  const identity = await generateIdentity()
  return { identity, recipient: await identityToRecipient(identity) }
}

test.each(['sqlite', 'sqlite.zst'])(
  'each recipient can open an encrypted backup (.%s.age), and nobody else',
  async (ending) => {
    const { at, maintenance, restore } = await backedUp()
    const [first, second, other] = [await keys(), await keys(), await keys()]
    const name = `e.${ending}.age`
    await maintenance.backup(at(name), NOW, { recipients: [first.recipient, second.recipient] })
    expect((await readFile(at(name))).subarray(0, 21).toString()).toBe('age-encryption.org/v1')
    expect((await readFile(at(name))).includes('CREATE TABLE')).toBe(false)
    await expect(restore(name)).rejects.toThrow(
      /is encrypted: name the file that holds its key with --identity/,
    )
    await expect(restore(name, { identities: [other.identity] })).rejects.toThrow(
      /is encrypted for other keys/,
    )
    expect(await restore(name, { identities: [other.identity, second.identity] })).toMatchObject({
      faults: [],
    })
  },
)

test('does not restore an encrypted backup that was changed or truncated', async () => {
  const { at, maintenance, restore } = await backedUp()
  const { identity, recipient } = await keys()
  await maintenance.backup(at('e.sqlite.age'), NOW, { recipients: [recipient] })
  const bytes = await readFile(at('e.sqlite.age'))
  const changed = Buffer.from(bytes)
  changed.writeUInt8(changed.readUInt8(bytes.length - 40_000) ^ 1, bytes.length - 40_000)
  await writeFile(at('changed.age'), changed)
  await writeFile(at('cut.age'), bytes)
  await truncate(at('cut.age'), bytes.length - 20)
  await writeFile(at('torn.age'), bytes.subarray(0, 30))
  for (const name of ['changed.age', 'cut.age', 'torn.age'])
    await expect(restore(name, { identities: [identity] }), name).rejects.toThrow(
      /is damaged and was not restored/,
    )
})

test('a hostile header of age costs neither time nor memory, and one at the limit is read', async () => {
  const { at, maintenance, restore } = await backedUp()
  const { identity, recipient } = await keys()
  const AGE = 'age-encryption.org/v1\n'
  const stanza = `-> X25519 CQ${'A'.repeat(41)}\n${'A'.repeat(43)}\n`
  const mac = `--- ${'A'.repeat(43)}\n`
  const header = (count: number) => `${AGE}${stanza.repeat(count)}${mac}`
  await writeFile(at('at-limit.age'), header(100))
  await expect(restore('at-limit.age', { identities: [identity] })).rejects.toThrow(
    /is encrypted for other keys/,
  )
  await writeFile(at('keys.age'), header(101))
  await writeFile(at('many.age'), header(20_000))
  await writeFile(at('long.age'), `${AGE}-> ${'x'.repeat(256 * 1024)}\n\n${mac}`)
  await writeFile(at('sparse.age'), AGE)
  await truncate(at('sparse.age'), 300_000_000)
  for (const name of ['keys.age', 'many.age', 'long.age', 'sparse.age']) {
    const before = process.memoryUsage().rss
    const began = process.cpuUsage()
    await expect(restore(name, { identities: [identity] }), name).rejects.toThrow(/its header is cut off/)
    const { user, system } = process.cpuUsage(began)
    expect((user + system) / 1000, name).toBeLessThan(1000)
    expect(process.memoryUsage().rss - before, name).toBeLessThan(50_000_000)
  }
  await expect(
    maintenance.backup(at('e.sqlite.age'), NOW, { recipients: Array<string>(101).fill(recipient) }),
  ).rejects.toThrow(/at most 100 public keys/)
})

test('by the command line: age keys from files, a name that tells, and no key in any output', async () => {
  const { at, folder } = await backedUp()
  const { identity, recipient } = await keys()
  const [other, last, lost] = [await keys(), await keys(), await keys()]
  await writeFile(at('recipients.txt'), `# operations\n${other.recipient}\n${recipient}\n${last.recipient}\n`)
  await writeFile(at('mixed.txt'), `\n${recipient}\nssh-ed25519 AAAA grace@example.org\n`)
  await writeFile(at('empty.txt'), '# nobody yet\n\n')
  await writeFile(
    at('key.txt'),
    `# created: today\n# public key: ${recipient}\nAGE-PLUGIN-OTHER-1\n${lost.identity}\n${identity}\n`,
  )
  const run = (...args: string[]) => command(['db', ...args], { cwd: folder })
  const made = await run('backup', 'p.sqlite.zst.age', '--recipient', 'recipients.txt', '--data', '.')
  expect(made).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('packed, encrypted, read back and compared'),
  })
  expect(
    await run('restore', 'p.sqlite.zst.age', '--identity', 'key.txt', '--data', 'drill', '--without-journal'),
  ).toMatchObject({ exitCode: 0 })
  expect(await run('verify', '--data', 'drill')).toMatchObject({ exitCode: 0 })
  for (const [args, reason] of [
    [['backup', 'q.sqlite.zst', '--recipient', recipient], /let its name end in \.age/],
    [['backup', 'q.sqlite.zst.age'], /name who may read it with --recipient/],
    [['backup', 'q.sqlite.zst.age', '--recipient', 'age1nonsense'], /is not a public key of age/],
    [
      ['restore', 'p.sqlite.zst.age', '--data', 'other', '--identity', 'recipients.txt'],
      /recipients\.txt holds no key of age \(AGE-SECRET-KEY-…\)/,
    ],
    [
      ['backup', 'q.sqlite.zst.age', '--recipient', 'mixed.txt'],
      /mixed\.txt holds no key of age \(age1…\), or a line besides/,
    ],
    [['backup', 'q.sqlite.zst.age', '--recipient', 'empty.txt'], /empty\.txt holds no key/],
  ] as const) {
    const refused = await run(...args, ...(args.includes('--data' as never) ? [] : ['--data', '.']))
    expect(refused.stderr).toMatch(reason)
    expect(refused.exitCode).toBeGreaterThan(0)
    expect(refused.stdout + refused.stderr).not.toContain(identity)
  }
  expect((await readdir(folder)).filter((name) => name.startsWith('.platformctl-'))).toEqual([])
})
