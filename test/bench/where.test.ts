import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { profileClock, profiled, profileIn } from '../../bench/profile.ts'
import { ingestPart, lessonPart, shares, startPart } from '../../bench/where-parts.ts'

/** `name source`, or a name alone. */
const frame = (text: string) => {
  const [, name = text, source] = /^(.+) ((?:src|node).*)$/.exec(text) ?? []
  return { name, source }
}
const TRANSACTION = [
  'sqliteTransaction node_modules/better-sqlite3/lib/methods/transaction.js',
  'write src/core/store/sqlite/course.ts',
]

test.each([
  ['SQLite: commits, until the disk confirms', [...TRANSACTION, 'settle src/core/store/sqlite/course.ts']],
  [
    'SQLite: writing marks',
    ['markSent src/core/store/sqlite/course.ts', ...TRANSACTION, 'settle src/core/store/sqlite/course.ts'],
  ],
  [
    'SQLite: the last look before handing over',
    [...TRANSACTION, 'stillHolds src/core/store/sqlite/course.ts'],
  ],
  ['HTTP client and sockets', ['writev', '_writev node:net', 'write node_modules/undici/lib/x.js']],
  ['HTTP client and sockets', ['onread node:net', '(root)']],
  [
    'filling and encoding the mail',
    [
      'latin1Write',
      'writePieces src/core/mail/encoding.ts',
      'jsonPiecesOf src/core/mail/transports/api-body.ts',
    ],
  ],
  [
    'finding, reading and compiling modules',
    ['readSync node:fs', 'load node:internal/modules/esm/loader', 'dispatch src/cli/commands/dispatch.ts'],
  ],
  ['garbage collection', ['(garbage collector)', 'renderMail src/core/mail/template.ts']],
])('a sample counts for %s', (part, stack) => {
  expect(lessonPart(stack.map(frame)).name).toBe(part)
})

test.each([
  [
    'SQLite: opening and migrating the store',
    ['prepare node_modules/better-sqlite3/lib/database.js', 'a src/core/store/sqlite/open.ts'],
  ],
  ['reading and judging the definition', ['resolve src/platform/resolve.ts']],
  ['the log', ['createLog src/daemon/log.ts']],
  ['Node: sockets, streams and files', ['listen node:net']],
  ['waiting for the disk', ['(idle)']],
])('a sample of a start counts for %s', (part, stack) => {
  expect(startPart(stack.map(frame)).name).toBe(part)
})

test.each([
  ['measuring depth', ['measure src/daemon/http/body.ts', 'parseJson src/daemon/http/body.ts']],
  ['JSON.parse', ['parseJson src/daemon/http/body.ts']],
  ['JSON.stringify of the events', ['append src/core/store/sqlite/analytics.ts']],
  ['SQLite: a row a batch and its commit', [...TRANSACTION, 'append src/core/store/sqlite/analytics.ts']],
  ['sanitizing and counting', ['sanitiseEvent src/core/analytics/sanitise.ts']],
])('a sample of ingest counts for %s', (part, stack) => {
  expect(ingestPart(stack.map(frame)).name).toBe(part)
})

test('shares of parts add up to what was sampled', () => {
  const parts = shares(
    [
      { stack: [frame('(idle)')], ms: 2 },
      { stack: [frame('a src/core/course/dispatch.ts')], ms: 3 },
      { stack: [frame('b src/core/delivery/run.ts')], ms: 4 },
    ],
    lessonPart,
  )
  expect(parts.map(({ ms }) => ms)).toEqual([7, 2])
})

test('a real process is profiled down to its own functions', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-profile-'))
  try {
    const script = path.join(folder, 'busy.mjs')
    await writeFile(
      script,
      'function busy() { for (const end = performance.now() + 150; performance.now() < end; ); }\nbusy()\n',
    )
    const from = profileClock()
    const samples = await profiled({ args: [script], everyMicroseconds: 500, folder })
    const until = profileClock()
    const busy = samples.filter(({ stack }) =>
      stack.some(({ name, source }) => name === 'busy' && source === script),
    )
    expect(busy.reduce((sum, { ms }) => sum + ms, 0)).toBeGreaterThan(50)
    // Its times are those of the clock here.
    expect(await profileIn(folder, { from, until })).toEqual(samples)
    expect(await profileIn(folder, { until: from })).toEqual([])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
