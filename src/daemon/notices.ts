import type { Clock } from '../core/clock.ts'
import type { Course } from '../core/course/course.ts'
import { heartbeatProbeName } from '../core/heartbeats.ts'
import type { Channel } from '../core/incidents/lanes.ts'
import type { Log } from '../core/log.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import type { Store } from '../core/store/store.ts'

/** Probes whose failure no visitor notices. */
const UNSEEN = ['sharedstore', 'errortrack', 'analytics']
const PUBLISH_MS = 60_000
/** Dispatch calls in a row. Each sends at most one notice to a subscriber, and several may be waiting. */
const CALLS = 20

/**
 * Tells the subscribers of the status page: publishes when an incident begins and when it ends, once for its root cause,
 * by the same claims as any other alert. What is only for operators (conditions, heartbeats) is left out.
 */
export function subscribersChannel({
  platform: { probes, contract, heartbeats },
  store,
  clock,
}: {
  readonly platform: Pick<ResolvedPlatform, 'probes' | 'contract' | 'heartbeats'>
  readonly store: Pick<Store, 'notices'>
  readonly clock: Pick<Clock, 'now'>
}): Channel {
  const unseen = new Set([...UNSEEN, ...heartbeats.map(({ name }) => heartbeatProbeName(name))])
  const seen = new Set(
    [...probes.map(({ name }) => name), ...contract.services].filter((name) => !unseen.has(name)),
  )
  return {
    ...{ name: 'subscribers', publishes: true, lines: 1, patienceMs: PUBLISH_MS },
    // An end is due only if the beginning was published, whatever the definition says today.
    takes: (kind, { cause }) => kind === 'closed' || (kind === 'opened' && seen.has(cause)),
    async tell({ id, kind, incident }) {
      if (kind !== 'opened' && kind !== 'closed')
        return { kind: 'permanent', reason: 'not for subscribers', hardBounce: false }
      const { id: subject, cause, service, affected, openedAt: from, closedAt: until } = incident
      try {
        await store.notices.publish({
          subject,
          kind,
          at: clock.now(),
          facts: { cause, service, affected, from, until: kind === 'closed' ? until : undefined },
        })
        return { kind: 'sent', id }
      } catch {
        return { kind: 'transient', reason: 'the store did not take the notice', scope: 'message' }
      }
    },
  }
}

export interface MailSender {
  /** Starts mailing the confirmations that are due. */
  confirmations(): void
  /** Starts publishing announcements and mailing notices. */
  notices(): void
  /** Resolves when nothing is being sent. */
  sent(): Promise<void>
}

/**
 * Mails notices to their subscribers, and confirmations that have not left yet: apart from the lessons and from each
 * other, so that no backlog of one holds up the other. Nobody waits for either, and at most one run of each goes on.
 */
export function createMailSender({
  store,
  course,
  clock,
  log,
}: {
  readonly store: Pick<Store, 'incidents' | 'notices'>
  readonly course: () => Promise<Pick<Course, 'dispatch' | 'noticesDue' | 'deliverMessages'>>
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
}): MailSender {
  const running = new Map<() => Promise<unknown>, Promise<void>>()

  async function notices(): Promise<void> {
    const now = clock.now()
    if ((await store.incidents.silenceAt(now)) !== undefined) return
    for (const { id: subject, text, translations, from, until } of await store.incidents.announcements(now)) {
      const facts = { text, translations, from, until }
      await store.notices.publish({ subject, kind: 'announced', at: now, facts })
    }
    const { dispatch, noticesDue } = await course()
    for (let call = 0; call < CALLS && (await noticesDue()); call += 1) {
      const { reason } = await dispatch({ limit: Number.POSITIVE_INFINITY, notices: true })
      if (reason !== undefined) return
    }
  }

  const confirmations = async () => (await course()).deliverMessages()

  function start(work: () => Promise<unknown>, event: string, failed: string): void {
    if (running.has(work)) return
    const ended = work()
      .then(
        () => {},
        (error: unknown) =>
          log.warn(event, `${failed}; the next round tries again`, {
            fault: error instanceof Error ? error.name : 'unknown',
          }),
      )
      .finally(() => running.delete(work))
    running.set(work, ended)
  }

  return {
    confirmations: () => start(confirmations, 'confirmations_failed', 'confirmations could not be mailed'),
    notices: () => start(notices, 'notices_failed', 'subscribers could not be told of incidents'),
    sent: async () => void (await Promise.all(running.values())),
  }
}
