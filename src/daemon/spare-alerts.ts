import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import {
  INCIDENTS_KEPT,
  type IncidentStore,
  type MessageRecord,
  type Silence,
  type StoredIncident,
} from '../core/incidents/incident.ts'
import { openStore } from '../core/store/open.ts'

/** Incidents, the messages about them, and the silence that holds: all that alerts need to go on elsewhere. */
export interface KnownAlerts {
  readonly incidents: readonly StoredIncident[]
  readonly messages: readonly MessageRecord[]
  readonly silence: Silence | undefined
}

/** Where incidents are kept while the store fails: in memory, and in a file for the process that comes after this one. */
export interface SpareAlerts {
  readonly incidents: IncidentStore
  /** Writes the file, so that a restart forgets nothing. Where it cannot be written, the memory has to do. */
  keep(now: number): Promise<void>
  /**
   * Copies the incidents opened and the alerts sent while the store failed back into the store. An incident whose cause
   * has another open one there is over: its end is sent, and the other goes on.
   */
  bringBack(to: IncidentStore, now: number): Promise<void>
  close(): Promise<void>
}

/** What an earlier process kept because the store failed; undefined if it left nothing. */
export function keptAlerts(files: readonly string[]): KnownAlerts | undefined {
  return files.map(readKept).find((kept) => kept !== undefined)
}

function readKept(file: string): KnownAlerts | undefined {
  try {
    const { incidents, messages, silence } = JSON.parse(readFileSync(file, 'utf8')) as KnownAlerts
    // JSON leaves out what is undefined, and a statement wants each of its values.
    const none = {
      reason: undefined,
      closedAt: undefined,
      acknowledgedAt: undefined,
      acknowledgedBy: undefined,
    }
    return { incidents: incidents.map((one) => ({ ...none, ...one })), messages: [...messages], silence }
  } catch {
    return undefined
  }
}

/** Starts with what is known, so that no alert is sent twice. */
export async function openSpareAlerts(
  files: readonly string[],
  known: readonly KnownAlerts[],
): Promise<SpareAlerts> {
  const store = await openStore(undefined)
  const { incidents } = store
  for (const { silence, incidents: open, messages } of known) {
    if (silence) await incidents.silence(silence)
    for (const incident of open) await incidents.open(incident)
    for (const message of messages) await recordSent(incidents, message)
  }
  const all = async () => {
    const found = await incidents.list(INCIDENTS_KEPT.most)
    return { incidents: found, messages: await incidents.messages(found.map(({ id }) => id)) }
  }
  return {
    incidents,
    async keep(now) {
      if (files.length === 0) return
      const kept: KnownAlerts = { ...(await all()), silence: await incidents.silenceAt(now) }
      const written = files.find((file) => write(file, JSON.stringify(kept)))
      // The others are older; while none can be written, they are better than nothing.
      if (written !== undefined) for (const file of files) if (file !== written) remove(file)
    },
    async bringBack(to, now) {
      const found = await all()
      for (const one of found.incidents) {
        if (await to.open(one)) continue
        const { cause, closedAt } = one
        if (closedAt !== undefined) await to.close({ cause, now: closedAt, unseenSince: closedAt })
        await to.open({ ...one, closedAt: closedAt ?? now })
      }
      for (const message of found.messages) await recordSent(to, message)
      files.forEach(remove)
    },
    close: () => store.close(),
  }
}

/** Whether a file could be written: whole or not at all. */
function write(file: string, text: string): boolean {
  const scratch = `${file}.${process.pid}`
  try {
    writeFileSync(scratch, text, { mode: 0o600 })
    chmodSync(scratch, 0o600)
    renameSync(scratch, file)
    return true
  } catch {
    remove(scratch)
    return false
  }
}

/** A file that cannot be removed is brought back once more, which changes nothing. */
function remove(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {}
}

/** Copies a sent message into a store; an unsent one is left to be sent. */
async function recordSent(store: IncidentStore, message: MessageRecord): Promise<void> {
  const { incident, kind, channel, outcome, at: now } = message
  if (outcome !== 'sent') return
  if ((await store.claim({ incident, kind, channel, now, leaseMs: 1 })) !== undefined)
    await store.settle({ incident, kind, channel, outcome: 'sent', now, nextAt: now, reason: undefined })
}
