import type { Clock } from '../core/clock.ts'
import type { Course } from '../core/course/course.ts'
import { heartbeatProbeName } from '../core/heartbeats.ts'
import type { Channel } from '../core/incidents/teller.ts'
import type { Log } from '../core/log.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import type { Store } from '../core/store/store.ts'

/** Probes whose failure no visitor notices. */
const UNSEEN = ['sharedstore', 'errortrack', 'analytics']
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
    name: 'subscribers',
    // An end is due only if the beginning was published, whatever the definition says today.
    takes: (kind, { cause }) => kind === 'closed' || (kind === 'opened' && seen.has(cause)),
    async tell({ kind, incident }) {
      if (kind !== 'opened' && kind !== 'closed') return { kind: 'permanent', reason: 'not for subscribers' }
      const { id: subject, cause, service, affected, openedAt: from, closedAt: until } = incident
      try {
        await store.notices.publish({
          subject,
          kind,
          at: clock.now(),
          facts: { cause, service, affected, from, until: kind === 'closed' ? until : undefined },
        })
        return { kind: 'sent' }
      } catch {
        return { kind: 'transient', reason: 'the store did not take the notice' }
      }
    },
  }
}

export interface NoticeSender {
  /** Publishes announcements and mails what is due; at most one run at a time, which nobody waits for. */
  send(): void
  /** Resolves when nothing is being sent. */
  sent(): Promise<void>
}

/** Mails notices to their subscribers, apart from the lessons, so that no backlog of those holds them up. */
export function createNoticeSender({
  store,
  course,
  clock,
  log,
}: {
  readonly store: Pick<Store, 'incidents' | 'notices'>
  readonly course: () => Promise<Pick<Course, 'dispatch' | 'noticesDue'>>
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
}): NoticeSender {
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    const now = clock.now()
    if ((await store.incidents.silenceAt(now)) !== undefined) return
    for (const { id: subject, text, from, until } of await store.incidents.announcements(now))
      await store.notices.publish({ subject, kind: 'announced', at: now, facts: { text, from, until } })
    const { dispatch, noticesDue } = await course()
    for (let call = 0; call < CALLS && (await noticesDue()); call += 1) {
      const { reason } = await dispatch({ limit: Number.POSITIVE_INFINITY, notices: true })
      if (reason !== undefined) return
    }
  }

  return {
    send() {
      running ??= run()
        .catch((error: unknown) =>
          log.warn(
            'notices_failed',
            'subscribers could not be told of incidents; the next round tries again',
            {
              fault: error instanceof Error ? error.name : 'unknown',
            },
          ),
        )
        .finally(() => {
          running = undefined
        })
    },
    sent: async () => running,
  }
}
