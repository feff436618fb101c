import { rmSync } from 'node:fs'
import { writeWhole } from '../core/daemon-record.ts'
import { faultOf } from '../core/errors.ts'
import {
  INCIDENTS_KEPT,
  type IncidentStore,
  type MessageRecord,
  type Silence,
  type StoredIncident,
  UNATTENDED,
} from '../core/incidents/incident.ts'
import { attempt } from '../core/is-record.ts'
import { readWhole } from '../core/regular-file.ts'
import { openStore } from '../core/store/open.ts'

/** Incidents, the messages about them, and the silence that holds: all that alerts need to go on elsewhere. */
export interface KnownAlerts extends Awaited<ReturnType<IncidentStore['unfinished']>> {
  readonly silence: Silence | undefined
}

/** Where incidents are kept while the store fails: in memory, and in a file for the process that comes after this one. */
export type SpareAlerts = Awaited<ReturnType<typeof openSpareAlerts>>

export const keptAlerts = (files: readonly string[]) => files.map(readKept).find((kept) => kept !== undefined)

const readKept = (file: string): KnownAlerts | undefined =>
  attempt(() => {
    const { incidents, messages, silence } = JSON.parse(readWhole(file)) as KnownAlerts
    // JSON leaves out what is undefined, and a statement wants each of its values.
    const none = { reason: undefined, ...UNATTENDED }
    return { incidents: incidents.map((one) => ({ ...none, ...one })), messages: [...messages], silence }
  })

/** Starts with what is known, so that no alert is sent twice. */
export async function openSpareAlerts(files: readonly string[], known: readonly KnownAlerts[], now: number) {
  const store = await openStore(undefined)
  const { incidents } = store
  async function take({ incidents: opens, messages, silence }: KnownAlerts): Promise<void> {
    await incidents.follow({ now, channels: [], decide: () => ({ opens, told: sentOf(messages) }) })
    if (silence) await incidents.silence(silence)
  }
  // What is no incident, in a file that somebody edited, must not hold up those that begin now.
  for (const one of known) await take(one).catch(() => {})
  const all = async () => {
    const found = await incidents.list(INCIDENTS_KEPT.most)
    return { incidents: found, messages: await incidents.messages(found.map(({ id }) => id)) }
  }
  return {
    incidents,
    /** Writes the file, so that a restart forgets nothing. Where it cannot be written, the memory has to do. */
    async keep(now: number): Promise<void> {
      if (files.length === 0) return
      const kept: KnownAlerts = { ...(await all()), silence: await incidents.silenceAt(now) }
      const text = JSON.stringify(kept)
      const written = files.find((file) => faultOf(() => writeWhole(file, text)) === undefined)
      // The others are older; while none can be written, they are better than nothing.
      if (written !== undefined) remove(files.filter((file) => file !== written))
    },
    /** Copies incidents and sent alerts back into the store. One whose cause has another open one there is closed. */
    async bringBack(to: IncidentStore, now: number): Promise<void> {
      const { incidents: here, messages } = await all()
      await to.follow({
        now,
        channels: [],
        decide(open) {
          const closes = here.flatMap(({ cause, closedAt: at, resolvedReason }) =>
            at === undefined ? [] : [{ cause, at, unseenSince: at, resolvedReason }],
          )
          const ends = ({ cause, seenAt }: StoredIncident) =>
            closes.some((one) => one.cause === cause && one.at >= seenAt)
          const isRival = ({ cause, id }: StoredIncident) =>
            open.some((one) => one.cause === cause && one.id !== id && !ends(one))
          const opens = here.map((one) => (isRival(one) ? { ...one, closedAt: one.closedAt ?? now } : one))
          // The oldest first: each end is that of the incident which is open then.
          return { closes: closes.toReversed(), opens, told: sentOf(messages) }
        },
      })
      remove(files)
    },
    close: () => store.close(),
  }
}

/** An alert that was not sent is left to be sent. */
const sentOf = (messages: readonly MessageRecord[]) => messages.filter(({ outcome }) => outcome === 'sent')

/** A file that cannot be removed is brought back once more, which changes nothing. */
function remove(files: readonly string[]): void {
  for (const file of files) attempt(() => rmSync(file, { force: true }))
}
