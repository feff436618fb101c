import { mkdirSync, rmdirSync } from 'node:fs'
import { readFile, rename } from 'node:fs/promises'
import path from 'node:path'
import { suppressionHash } from '../../src/core/course/links.ts'
import { releaseChange, suppressionChange } from '../../src/core/mail/feedback/store.ts'
import { openMaintenance, openStore, restoreStore } from '../../src/core/store/open.ts'
import { newFile, openTestStore } from './stores.ts'
import { erasureOf, subscribe } from './subscribers.ts'

export const NOW = Date.UTC(2026, 10, 21)
/** The key under which the store knows addresses that were erased. */
export const KEY = 'the key under which this store knows addresses'
const hashOf = (name: string) => suppressionHash(KEY, `${name}@example.com`)

/** A store in a file with people in the default course, whose ids are their names; its backups, and its journal. */
export async function storeWith(...names: readonly string[]) {
  const file = await newFile('platform.sqlite')
  const folder = path.dirname(file)
  const at = (name: string) => path.join(folder, name)
  const open = (name = 'platform.sqlite') => openTestStore({ kind: 'sqlite', file: at(name) })
  const store = await open()
  await store.getOrCreate('address_key', () => KEY)
  for (const name of names) await subscribe(store, name, NOW)
  const journal = at('platform-journal.jsonl')
  return {
    at,
    folder,
    file,
    open,
    store,
    /** The file of the journal, beside the store. */
    journal,
    journalText: () => readFile(journal, 'utf8'),
    /** Does something while the journal cannot be written: not even the superuser can write a folder. */
    withoutJournal: async (work: () => Promise<unknown>) => {
      await rename(journal, at('aside'))
      mkdirSync(journal)
      await work()
      rmdirSync(journal)
      await rename(at('aside'), journal)
    },
    leave: (id: string, now = NOW + 1) => store.course.unsubscribe({ id, now }),
    undo: (id: string, now = NOW + 2) => store.course.undoUnsubscribe({ id, now }),
    erase: (name: string, { within = store, now = NOW + 1, recipients = [] as readonly string[] } = {}) =>
      within.course.erase({ ...erasureOf(name, hashOf(name), now), recipients }),
    suppress: (name: string, now = NOW) => {
      const suppression = { cause: 'manual', at: now, source: 'operator', reason: 'asked' } as const
      const change = suppressionChange(`${name}@example.com`, suppression, () => [hashOf(name)])
      return store.feedback.apply([change], now)
    },
    release: (name: string, now = NOW) => {
      const release = { at: now, reason: 'a new mailbox', source: 'operator' }
      return store.feedback.apply([releaseChange(`${name}@example.com`, release)], now)
    },
    backup: async (name = 'b.sqlite', of = file, now = NOW) => {
      const maintenance = await openMaintenance({ kind: 'sqlite', file: of })
      await maintenance.backup(at(name), now)
      await maintenance.close()
    },
    restore: (options: Partial<Parameters<typeof restoreStore>[1]> = {}, to = 'platform.sqlite') =>
      restoreStore(
        { kind: 'sqlite', file: at(to) },
        { from: at('b.sqlite'), force: true, now: NOW + 9, ...options },
      ),
    /** How the people stand in a store. */
    states: async (name = 'platform.sqlite') => {
      const restored = await openStore({ kind: 'sqlite', file: at(name) })
      const found = await Promise.all(names.map((one) => restored.course.find(`${one}@example.com`)))
      await restored.close()
      return found.map((one) => one?.state)
    },
  }
}
