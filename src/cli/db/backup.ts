import { statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { readSettings } from '../../core/env/settings.ts'
import type { AfterRestoreOptions } from '../../core/store/postgres/maintenance.ts'
import type { Replayed } from '../../core/store/replay.ts'
import type { RestoreResult } from '../../core/store/sqlite/restore.ts'
import { auditOf, onPlace, onStore } from '../command.ts'
import { type Context, failure, wrongUsage } from '../context.ts'
import { readTextFile } from '../environment.ts'
import { repeatable } from '../inputs.ts'
import { compact, iso, plural, sizeText } from '../output/text.ts'

/** Endings that promise a format that backups do not have. */
const FOREIGN = /\.(?:7z|br|bz2|dump|gpg|lz4|rar|sql|tar|tgz|xz|zip|zstd)$/i

export const backup = onStore({
  summary:
    'write a consistent backup, also while the daemon runs. It is read back and checked before it is saved. Stored events of visitors go into a second file beside it',
  examples: [
    'platform.sqlite.zst    packed by zstd',
    'platform.sqlite.gz     packed by gzip',
    'copy.sqlite            not compressed',
    'platform.sqlite.zst.age --recipient recipients.txt',
  ],
  document: 'db backup',
  inputs: {
    '<file>': 'a new file; compressed if its name ends in .zst or .gz, else an SQLite file',
    '--recipient <key>': repeatable(
      'encrypt for this public key of age (age1…), or for those in a file; repeatable; the name then ends in .age',
    ),
    '--no-analytics': 'leave out visitors’ events, which have a file of their own',
  },
  async run(context, { file: name, recipient, analytics }, job) {
    // Public keys of age, named as they are or by files with one a line.
    const keys = recipient.map((one) => (one.startsWith('age1') ? [one] : keysIn(context, one, 'age1')))
    const recipients = (await Promise.all(keys)).flat()
    if (name === '-')
      throw wrongUsage('a backup is read back, so it cannot go to standard output: name a file.')
    const foreign = FOREIGN.exec(name)?.[0]
    if (foreign !== undefined)
      throw wrongUsage(`a backup is no ${foreign} file: end its name in .sqlite.zst, .sqlite.gz or .sqlite.`)
    const file = path.resolve(context.cwd, name)
    const now = context.clock.now()
    const result = await (await job.maintenance()).backup(file, now, { recipients })
    const { analyticsBackup } = await import('../../core/store/open.ts')
    const events = analytics ? await job.analyticsMaintenance() : undefined
    // The file of analytics beside the store's, into a file beside the backup's.
    const copied = await events
      ?.backup(analyticsBackup(file), now, { recipients })
      .catch((error: unknown) => {
        if (!(error instanceof Error && error.name === 'StoreMaintenanceError')) throw error
        throw failure(`${name} is complete, but the events of visitors were not backed up: ${error.message}`)
      })
    const lines = compact(
      `${name}: ${sizeText(result.bytes)}, schema ${result.version}, rows: ${rowsText(result.counts)}`,
      copied &&
        `${analyticsBackup(name)}: ${sizeText(copied.bytes)}, events of visitors, rows: ${rowsText(copied.counts)}`,
      `checked, ${name.includes('.sqlite.') ? 'packed, ' : ''}${recipients.length > 0 ? 'encrypted, ' : ''}read back and compared`,
    )
    return { json: { result, ...(copied && { analytics: copied }) }, text: `${lines.join('\n')}\n` }
  },
})

async function keysIn(context: Context, file: string, prefix: string): Promise<readonly string[]> {
  const lines = (await readTextFile(context, file)).split('\n').map((line) => line.trim())
  const keys = lines.filter((line) => line.startsWith(prefix))
  const isWhole = lines.every((line) => line === '' || line.startsWith('#') || line.startsWith(prefix))
  if (keys.length === 0 || (prefix === 'age1' && !isWhole))
    throw wrongUsage(`${file} holds no key of age (${prefix}…), or a line besides that is no comment (#).`)
  return keys
}

export const restore = onPlace({
  summary:
    'replace the store with a backup, which is verified first; the old store is kept beside it. Unsubscribes, suppressions, erasures, pauses of mail and the audit log since the backup are replayed from the journal beside the store and from the replaced store. For PostgreSQL, use its own tools and after-restore',
  examples: [
    'platform.sqlite.zst --data /var/lib/platformctl',
    'platform.sqlite.zst --force    also when there is a store; stop the daemon first',
    'platform.sqlite.zst --data /srv/new --journal platform-journal.jsonl    elsewhere',
  ],
  document: 'db restore',
  inputs: {
    '<file>': 'the backup; the backup of visitors’ events beside it is restored too, if there is one',
    '--identity <file>': 'the file with the secret key of age (AGE-SECRET-KEY-1…) for an encrypted backup',
    '--force': 'replace an existing store; it is kept beside the new one under another name',
    '--journal <file>': 'the journal from beside the replaced store, for a restore elsewhere',
    '--without-journal':
      'restore although the journal is lost; people who left since the backup are mailed again, unless the replaced store names them',
    '--sent-from <file>':
      'the replaced store’s file; lessons that it sent since the backup are not sent again',
  },
  async run(context, { file: name, force, identity, journal, withoutJournal, sentFrom }, { address }) {
    const from = existing(context, name)
    const { analyticsBackup, restoreStore } = await import('../../core/store/open.ts')
    const { analytics, ...result } = await restoreStore(address, {
      from,
      force: force === true,
      now: context.clock.now(),
      // In a file as age-keygen writes it.
      identities: identity === undefined ? [] : await keysIn(context, identity, 'AGE-SECRET-KEY-'),
      journal: journal && existing(context, journal),
      withoutJournal,
      sentFrom: sentFrom && existing(context, sentFrom),
      audit: auditOf(context, { action: 'restore', details: path.basename(name) }),
    })
    for (const fault of result.faults) context.stderr.write(`restored as it was: ${fault}\n`)
    const { owner, ...said } = result
    if (owner !== undefined && owner !== context.platform.name)
      context.stderr.write(
        `the backup is of the platform ${JSON.stringify(owner)}, and this is ${JSON.stringify(context.platform.name)}: unless the platform was renamed (daemon --adopt), restore another one.\n`,
      )
    const kept = (what: string, where: string | undefined) =>
      where === undefined ? '' : `${what} before it is kept as ${where}\n`
    const events = analytics
      ? `restored ${analyticsBackup(name)}: events of visitors, rows: ${rowsText(analytics.counts)}\n${kept('the file', analytics.kept)}`
      : ''
    return {
      json: { result: said, ...(analytics && { analytics }) },
      text: `restored ${name}: schema ${result.version}, rows: ${rowsText(result.counts)}\n${coveredText(result)}${sentText(result)}${kept('the store', result.kept)}${events}`,
    }
  },
})

export const afterRestore = onStore({
  summary:
    'after PostgreSQL was restored to an older state: apply unsubscribes, erasures and bounces since then, so that nobody who left is mailed. Stop the daemon first; running it twice changes nothing more',
  examples: [
    '--from platformctl_before    the replaced schema, in the same database',
    '--from postgres://platform@old.example.com/platform    the replaced database',
    '--journal journal.jsonl    what db journal wrote',
  ],
  document: 'db after-restore',
  inputs: {
    '--from <store>': 'the replaced store: the URL of its database, or its schema’s name in this one',
    '--journal <file>': 'a journal of the replaced store',
    '--without-journal': 'go on without it: people who left since are mailed again',
  },
  async run(context, { from, journal, withoutJournal }, { address }) {
    const { afterRestore: apply } = await import('../../core/store/open.ts')
    const result = await apply(address, {
      from: replacedStore(context, from),
      journal: journal && existing(context, journal),
      withoutJournal,
      now: context.clock.now(),
      audit: auditOf(context, { action: 'restore', details: 'after-restore' }),
    })
    const { replayed, restoredTo, coveredTo, repeats } = result
    const done = coveredText({ replayed, uncoveredSince: coveredTo === undefined ? restoredTo : undefined })
    const end = coveredTo && `changes up to ${iso(coveredTo)} are covered; later ones are lost\n`
    return { json: { result }, text: `${done}${end || ''}${sentText({ repeats })}` }
  },
})

export const journal = onStore({
  summary:
    'write the list of people who left into a new file. A restore needs it if the store and its machine are lost: keep it elsewhere, and write it more often than backups. It names suppressed addresses',
  examples: ['/var/backups/journal-2026-11-23T14.jsonl'],
  document: 'db journal',
  inputs: { '<file>': 'a new file' },
  async run(context, { file: name }, { maintenance, address }) {
    const { linesOf } = await import('../../core/store/journal.ts')
    const { making, shareOwner } = await import('../../core/store/sqlite/files.ts')
    const entries = await (await maintenance()).journal(context.clock.now())
    await making(path.resolve(context.cwd, name), async (made) => {
      // For its owner only: it names suppressed addresses.
      writeFileSync(made, linesOf(entries), { mode: 0o600, flush: true })
      if (address.kind === 'sqlite') shareOwner(made, address.file)
    })
    return {
      json: { file: name, entries: entries.length },
      text: `${name}: ${entries.length} changes that a restore must not undo\n`,
    }
  },
})

/** The full path of a file to read, which must be there. */
function existing(context: Context, name: string): string {
  const file = path.resolve(context.cwd, name)
  const found = statSync(file, { throwIfNoEntry: false })
  if (!found) throw wrongUsage(`cannot read ${name}: there is no such file; check the path.`)
  if (found.isDirectory()) throw wrongUsage(`cannot read ${name}: it is a folder; name the file in it.`)
  if (!found.isFile()) throw wrongUsage(`cannot read ${name}: it is a pipe or a device; name a file.`)
  return file
}

function replacedStore(context: Context, from: string | undefined): AfterRestoreOptions['from'] {
  if (from === undefined) return undefined
  if (!from.includes(':')) return { schema: from }
  const address = readSettings(context.platform, { STORE_URL: from }).store.address
  if (address?.kind !== 'postgres')
    throw wrongUsage(
      '--from is neither the address of a PostgreSQL database (postgres://user:password@host/database) nor the name of a schema.',
    )
  return address.url
}

function coveredText({ replayed, uncoveredSince, coveredTo }: Partial<RestoreResult>): string {
  const done = replayedText(replayed)
  if (uncoveredSince !== undefined)
    return `${done}no journal covers the time since ${iso(uncoveredSince)}: ${done ? 'others' : 'people'} who unsubscribed, bounced or were erased since then are mailed again\n`
  const end = coveredTo && `the journal ends at ${iso(coveredTo)}: people who left later are mailed again\n`
  return `${done || 'the journal has no changes after the backup\n'}${end || ''}`
}

/** What a count is called, if not by its name. */
const REPLAYED: Readonly<Record<string, string>> = {
  undone: 'subscribed again',
  released: 'taken off the suppression list',
}

function replayedText(replayed: Partial<Replayed> = {}): string {
  const counts = Object.entries(replayed).filter(([, count]) => count > 0)
  const happened = counts.map(([kind, count]) => `${count} ${REPLAYED[kind] ?? kind}`).join(', ')
  return happened && `replayed, because it happened after the backup: ${happened}\n`
}

/** What will be sent twice, and what was taken over so that it is not. */
function sentText({ repeats, taken }: Pick<RestoreResult, 'repeats'> & { readonly taken?: number }): string {
  const otherwise = taken === undefined ? '' : 'restore with --sent-from and the replaced store’s file, or '
  const took = taken
    ? `${plural(taken, 'lesson')} sent after the backup ${taken === 1 ? 'is' : 'are'} recorded as sent\n`
    : ''
  if (repeats === undefined)
    return `${took}no earlier store could be read: what was sent after the backup is sent again, and alerts, silences and announcements are those of the backup\n`
  return repeats === 0
    ? took
    : `${took}${plural(repeats, 'lesson')} sent after the backup will be sent again: ${otherwise}use course resolve SUBSCRIPTION sent to prevent it\n`
}

/** `subscription 3, confirmation 2`: tables with rows, the fullest first. */
export function rowsText(counts: Readonly<Record<string, number>>): string {
  const filled = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
  return filled.map(([table, count]) => `${table} ${count}`).join(', ') || 'none'
}
