import { auditEntry, PROGRAM } from '../../src/core/audit.ts'
import { readSettings } from '../../src/core/env/settings.ts'
import { silentLog } from '../../src/core/host.ts'
import type { Channel } from '../../src/core/incidents/channels.ts'
import type { Changes, IncidentStore } from '../../src/core/incidents/incident.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import type { Core } from './core.ts'
import { NEVER } from './provider.ts'
import { seeded } from './seeded.ts'
import type { VirtualTime } from './virtual-time.ts'
import type { Witness } from './witness.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const LIVES_MS = 12 * HOUR
/** A cause that fails, or works again, has or ends its incident within this. */
const NOTICED_MS = 8 * MINUTE
/** Once nothing holds an alert back, it is sent within this; one about a cause that flaps after ten minutes more. */
const TOLD_MS = 5 * MINUTE
const FLAPS_MS = 10 * MINUTE
/** An outage that nobody acknowledges is paged after this. */
const PAGED_MS = 15 * MINUTE
/** After a failed attempt, the next comes within this. After the last, the alert is given up. */
const PAUSES = [15 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR]
const SKEW_MS = 150 * SECOND
/** By name: the service, and what it needs. */
const PROBES: Readonly<Record<string, { readonly service: string; readonly needs: readonly string[] }>> = {
  kiln: { service: 'web', needs: [] },
  oven: { service: 'web', needs: ['kiln'] },
  glaze: { service: 'api', needs: ['oven', 'kiln'] },
  lamp: { service: 'api', needs: [] },
}
const NAMES = Object.keys(PROBES)
const needsOf = (probe: string) => PROBES[probe]?.needs ?? []
const platform = {
  name: 'Kiln',
  probes: Object.entries(PROBES).map(([name, { service, needs }]) => ({
    name,
    service,
    dependsOn: () => needs,
    open: () => () => NEVER,
  })),
  services: learning.services,
}

/** One alert on one channel, as its receiver and the witness see it. */
interface Told {
  /** Of the claim in hand. */
  attempt: number
  attempts: number
  deliveries: number
  /** It is recorded that nothing more is to be tried. */
  isOver: boolean
  /** An attempt was lost, or its answer was: the next may repeat it. */
  unsettled: boolean
  pause: number
  /** Nothing but a deadline: the alert is sent soon after. */
  notBefore: number
}

interface Outage {
  readonly cause: string
  closed: boolean
  /** When somebody began to look at it. */
  acknowledgedAt: number
}

const entryOf = (now: number) =>
  auditEntry(
    { clock: { now: () => now }, random: seeded(now) },
    { action: 'resolve-incident', operator: PROGRAM },
  )

/**
 * The alerts of two daemons over one store, which are killed while probes fail, channels hang and refuse, operators
 * silence, acknowledge and resolve, and the clock is stepped. Every channel sends the beginning and the end of each
 * outage, once and in this order, and nobody is paged who was told that somebody looks at it.
 */
export async function simulateAlerts(input: {
  readonly core: Pick<Core, 'openStore' | 'startAlerts'>
  readonly time: VirtualTime
  readonly start: number
  readonly seed: number
  readonly witness: Pick<Witness, 'violation' | 'note'>
}): Promise<() => Promise<void>> {
  const { core, time, start, seed, witness } = input
  const random = seeded(seed ^ 0xa1e7)
  const store = await core.openStore(undefined, { leaseClock: time.elapsed })
  const settings = readSettings(learning, {})
  const { elapsed } = time
  let [ahead, steppedAt, silentAt] = [0, 0, 0]
  const clock = { ...time.clock, now: () => start + elapsed() + ahead }
  /** Each process checks one service, or both check all. */
  const apart = random.oneIn(3)
  const checks = (n: number, probe: string) => !apart || (PROBES[probe]?.service === 'web') === (n === 0)
  const processes = [0, 1].map(() => ({ since: Number.POSITIVE_INFINITY }))
  /** A fault of a probe, with the process that alone sees it, or undefined. */
  const broken = new Map<string, number | undefined>()
  const fails = (n: number, probe: string): boolean =>
    (broken.has(probe) && (broken.get(probe) ?? n) === n) || needsOf(probe).some((one) => fails(n, one))
  const changes = new Map<string, number>()
  /** For how long a probe has been as it is, for a process that looks at it. */
  const steadyMs = (n: number, probe: string) =>
    elapsed() - Math.max(processes[n]?.since ?? 0, changes.get(probe) ?? 0)
  let silences: { readonly from: number; readonly until: number }[] = []
  /** Of a time to come, and so near that the next round may keep them. */
  let perhaps: typeof silences = []
  const holds = (all: typeof silences) =>
    all.some(({ from, until }) => from <= clock.now() && clock.now() < until)
  const isSilent = () => holds(silences)
  const incidents = new Map<string, Outage>()
  const told = new Map<string, Told>()
  const channels = (random.oneIn(3) ? ['webhook', 'mail', 'pager'] : ['webhook', 'mail']).map((name) => ({
    name,
    ...(name === 'pager' && { afterMs: PAGED_MS }),
    patience: name === 'mail' ? MINUTE : 20 * SECOND,
    isDown: false,
    upSince: 0,
  }))
  const toldOf = (channel: string, id: string, kind: string): Told => {
    const key = `${channel} ${id} ${kind}`
    const none = {
      attempt: 0,
      attempts: 0,
      deliveries: 0,
      isOver: false,
      unsettled: false,
      pause: 0,
      notBefore: elapsed(),
    }
    const found = told.get(key) ?? none
    told.set(key, found)
    return found
  }

  /** An operator looks at an outage, or ends it by hand. */
  function decide(id = ''): void {
    const outage = incidents.get(id)
    if (outage === undefined || outage.closed) return
    const now = clock.now()
    const ends = random.oneIn(3)
    const done = ends
      ? store.incidents.resolve({ id, now, by: 'ada', reason: 'done', audit: entryOf(now) })
      : store.incidents.acknowledge({ id, now, by: 'ada' })
    void done.then((changed) => {
      if (!changed) return
      if (ends) outage.closed = true
      else outage.acknowledgedAt = elapsed()
      // A cause that still fails opens another incident.
      if (ends) changes.set(outage.cause, elapsed())
      witness.note(outage.cause, `${ends ? 'resolved' : 'acknowledged'} ${id}`)
    })
  }

  function startProcess(n: number): void {
    const process = { since: elapsed() }
    processes[n] = process
    let alive = true
    const held = new Set<Told>()
    const kill = () => {
      if (!alive) return
      alive = false
      process.since = Number.POSITIVE_INFINITY
      for (const one of held) one.unsettled = true
      witness.note('', `the alerts of daemon ${n} killed`)
      time.after(random.between(SECOND, 5 * MINUTE), () => startProcess(n))
    }
    const around =
      <A, T>(work: (asked: A) => Promise<T>, oneIn = 1000) =>
      async (asked: A): Promise<T> => {
        if (!alive) return NEVER
        if (random.oneIn(oneIn)) kill()
        const result = await work(asked)
        if (alive && random.oneIn(oneIn)) kill()
        return alive ? result : NEVER
      }
    const { follow, claimAlerts, settleAlerts, keepAlerts, find, silenceAt, unfinished } = store.incidents
    const faulty: IncidentStore = {
      ...store.incidents,
      unfinished: around(unfinished),
      find: around(find),
      silenceAt: around(silenceAt),
      keepAlerts: around(keepAlerts),
      follow: around(async (asked) => {
        const before = new Set((await store.incidents.list(0)).map(({ id }) => id))
        let decided: Changes = {}
        const answer = await follow({
          ...asked,
          decide(open) {
            decided = asked.decide(open)
            return decided
          },
        })
        const after = (await store.incidents.list(0)).filter(({ closedAt }) => closedAt === undefined)
        // By what this process decided: the other one may have opened some meanwhile.
        for (const { id, cause } of after)
          if (!before.has(id) && decided.opens?.some((one) => one.id === id)) opened(id, cause)
        for (const id of before) if (!after.some((one) => one.id === id)) closed(id)
        return answer
      }, 500),
      claimAlerts: around(async (asked) => {
        const claims = await claimAlerts(asked)
        for (const { channel, incident, kind, attempts } of claims) {
          const one = toldOf(channel, incident, kind)
          held.add(one)
          Object.assign(one, { attempt: attempts + 1, notBefore: elapsed() + 90 * SECOND })
        }
        if (claims.length > 0 && random.oneIn(20)) kill()
        return claims
      }),
      settleAlerts: around(async (settlements) => {
        await settleAlerts(settlements)
        for (const { claim, record, isTried } of settlements) {
          const one = toldOf(claim.channel, claim.incident, claim.kind)
          held.delete(one)
          one.isOver ||= isTried && record.result !== 'waits'
          if (claim.kind === 'closed' && isTried && record.result === 'over')
            witness.violation('the end of an outage was given up', `${claim.incident} on ${claim.channel}`)
        }
      }, 40),
    }
    function opened(id: string, cause: string): void {
      incidents.set(id, { cause, closed: false, acknowledgedAt: Number.POSITIVE_INFINITY })
      witness.note(cause, `daemon ${n} opened ${id}`)
      if (random.oneIn(4)) time.after(random.between(SECOND, MINUTE), () => decide(id))
      const explains = (one: string) =>
        fails(n, one) &&
        (checks(n, one) || (elapsed() - steppedAt > NOTICED_MS && steadyMs(1 - n, one) > NOTICED_MS))
      if (needsOf(cause).some(explains)) witness.violation('an incident of what another one explains', cause)
    }
    function closed(id: string): void {
      const { cause } = incidents.get(id) ?? { cause: '' }
      for (const one of incidents.values()) if (one.cause === cause) one.closed = true
      witness.note(cause, `daemon ${n} closed it`)
      // Others look within a minute of a step; a process that starts just then may be earlier.
      if (process.since > steppedAt && elapsed() - steppedAt < 3 * MINUTE)
        return void changes.set(cause, elapsed())
      if ([0, 1].some((one) => checks(one, cause) && fails(one, cause) && steadyMs(one, cause) > 3 * MINUTE))
        witness.violation('an incident was closed while its cause still fails', cause)
    }
    const tell = (channel: (typeof channels)[number]): Channel => ({
      ...{ name: channel.name, afterMs: channel.afterMs, lines: 3, patienceMs: channel.patience },
      async tell({ id, kind, incident }) {
        const one = toldOf(channel.name, incident.id, kind)
        const about = `${incident.cause} ${kind} on ${channel.name}`
        const deliver = () => {
          one.deliveries += 1
          witness.note(incident.cause, `${about} delivered`)
          if (one.deliveries > 1 && !one.unsettled && (!kind.startsWith('reminder') || steppedAt === 0))
            witness.violation('an alert was repeated though no attempt of it was lost', about)
          if (kind !== 'closed' && (told.get(`${channel.name} ${incident.id} closed`)?.deliveries ?? 0) > 0)
            witness.violation('an alert was sent after the end of its incident', about)
        }
        one.attempts = one.attempt
        if (isSilent()) witness.violation('an alert was sent during a silence', about)
        const acknowledged = incidents.get(incident.id)?.acknowledgedAt ?? Number.POSITIVE_INFINITY
        if (kind.startsWith('reminder') && (channel.afterMs || elapsed() > acknowledged + SECOND))
          witness.violation('a reminder of what somebody looks at, or to a pager', about)
        if (kind === 'opened' && channel.afterMs && one.attempts === 1) {
          if (clock.now() < incident.openedAt + PAGED_MS || elapsed() > acknowledged + SECOND)
            witness.violation('somebody was paged too early, or for what another one looks at', about)
        }
        await time.clock.sleep(
          channel.isDown ? channel.patience : random.pick([50, 300, 3000, channel.patience - SECOND]),
        )
        const isLost = random.oneIn(channel.isDown ? 4 : 10)
        if (isLost && random.oneIn(2)) deliver()
        if (isLost) one.unsettled = true
        if (!alive) return NEVER
        if (isLost || channel.isDown || random.oneIn(8)) {
          one.pause = PAUSES[one.attempts - 1] ?? Number.POSITIVE_INFINITY
          one.notBefore = elapsed() + one.pause
          // A full mailbox may refuse an end for good, as it says.
          return kind === 'closed' && one.attempts % 3 === 2 && !isLost
            ? { kind: 'permanent', reason: 'refused', hardBounce: false }
            : { kind: 'transient', reason: 'no answer', scope: 'message' }
        }
        deliver()
        return { kind: 'sent', id }
      },
    })
    // What is asked every seven seconds, for days, would take most of the time: no silence begins just before a fault.
    const sleep: typeof time.clock.sleep = (ms, signal) =>
      ms === 7 * SECOND ? NEVER : time.clock.sleep(ms, signal)
    const alerts = core.startAlerts(
      { clock, timer: { ...time.clock, sleep }, random, log: silentLog },
      { store: { incidents: faulty }, platform, settings, channels: channels.map(tell), dataFolder: '/data' },
    )
    const round = async () => {
      while (alive && elapsed() < LIVES_MS) {
        const reports = ['web', 'api'].map((service) => {
          const own = NAMES.filter((name) => PROBES[name]?.service === service && checks(n, name))
          const result = (name: string) =>
            fails(n, name)
              ? ({ state: 'failing', checked: true, reason: 'broken' } as const)
              : ({ state: 'ok', checked: true } as const)
          return { service, probes: Object.fromEntries(own.map((name) => [name, result(name)])) }
        })
        const again = await alerts.follow(reports.filter(({ probes }) => Object.keys(probes).length > 0))
        await time.clock.sleep(again ? 15 * SECOND : MINUTE)
      }
    }
    round().catch((error: unknown) => witness.violation(`alerts threw: ${String(error)}`, String(n)))
  }

  const every = (low: number, high: number, work: () => void) =>
    time.after(random.between(low, high), () => {
      if (elapsed() > LIVES_MS) return
      work()
      every(low, high, work)
    })
  const change = (probe: string, work: () => void) => {
    work()
    for (const one of NAMES) if (one === probe || needsOf(one).includes(probe)) changes.set(one, elapsed())
    witness.note(probe, broken.has(probe) ? 'fails' : 'works')
  }
  const breakOne = (probe: string) => {
    if (elapsed() > LIVES_MS) return
    const by = random.oneIn(3) ? [0, 1].find((n) => checks(n, probe)) : undefined
    change(probe, () => broken.set(probe, by))
    time.after(random.pick([MINUTE, 4 * MINUTE, 40 * MINUTE, 6 * HOUR]), () => {
      change(probe, () => broken.delete(probe))
      time.after(random.pick([2 * MINUTE, 20 * MINUTE, 2 * HOUR, 5 * HOUR]), () => breakOne(probe))
    })
  }
  for (const probe of NAMES) time.after(random.between(MINUTE, 3 * HOUR), () => breakOne(probe))
  for (const channel of channels) {
    const leave = () => {
      channel.isDown = true
    }
    // A quarter of the channels leave and do not come back, so that a message can use up its attempts.
    if (random.oneIn(4)) time.after(random.between(10 * MINUTE, HOUR), leave)
    else
      every(3 * HOUR, 12 * HOUR, () => {
        leave()
        time.after(random.pick([10 * MINUTE, HOUR, 2 * HOUR]), () => {
          Object.assign(channel, { isDown: false, upSince: elapsed() })
        })
      })
  }
  every(HOUR, 5 * HOUR, () => {
    const from = clock.now()
    const isEnd = random.oneIn(3)
    const until = isEnd ? from : from + random.pick([10 * MINUTE, 2 * HOUR, 5 * HOUR])
    silences = isEnd ? [] : [...silences, { from, until }]
    witness.note('', `silent for ${until - from}`)
    void store.incidents.silence({ from, until, reason: 'a deploy', by: 'ops' })
  })
  if (random.oneIn(2))
    every(2 * HOUR, 9 * HOUR, () => {
      ahead += random.pick([-1, 1]) * random.pick([HOUR, 5 * HOUR, 25 * HOUR, 72 * HOUR])
      steppedAt = elapsed()
      perhaps = silences.filter(({ from }) => from <= clock.now() + SKEW_MS + NOTICED_MS)
      silences = silences.filter(({ from }) => from <= clock.now() + SKEW_MS)
      for (const one of told.values()) one.notBefore = elapsed() + one.pause
      witness.note('', `the clock of alerts now ${new Date(clock.now()).toISOString()}`)
    })

  every(30 * MINUTE, 4 * HOUR, () => {
    const open = [...incidents.keys()].filter((id) => !incidents.get(id)?.closed)
    decide(open[random.between(0, open.length)])
  })

  /** An alert that is due and that nothing holds back was sent by now. */
  function lookAtAlerts(id: string, { cause, closed, acknowledgedAt }: Outage): void {
    const isSeen = acknowledgedAt < elapsed()
    const isFlapping = [...incidents.values()].filter((one) => one.cause === cause).length > 3
    for (const { name, isDown, upSince, afterMs = 0 } of channels) {
      const opened = toldOf(name, id, 'opened')
      const kind = closed ? 'closed' : isSeen && opened.isOver ? 'acknowledged' : 'opened'
      if ((closed || isSeen) && opened.attempts === 0) continue
      const one = toldOf(name, id, kind)
      if (one.deliveries === 0 && one.attempts <= PAUSES.length && !isDown) {
        const held = Math.max(one.notBefore, upSince, steppedAt, silentAt)
        const bound = TOLD_MS + (kind !== 'opened' ? 0 : Math.max(afterMs, isFlapping ? FLAPS_MS : 0))
        if (processes.some(({ since }) => elapsed() - Math.max(held, since) > bound))
          witness.violation('an alert did not come in time', `${cause} ${kind} on ${name}`)
      }
    }
  }
  const look = () => {
    if (isSilent() || holds(perhaps)) silentAt = elapsed()
    for (const [id, one] of incidents) lookAtAlerts(id, one)
    for (const probe of NAMES) {
      const isOpen = [...incidents.values()].some(({ cause, closed }) => cause === probe && !closed)
      const seers = [0, 1].filter((n) => checks(n, probe) && steadyMs(n, probe) > NOTICED_MS)
      const isRoot = (n: number) =>
        fails(n, probe) && !needsOf(probe).some((one) => fails(0, one) || fails(1, one))
      if (!isOpen && seers.some(isRoot)) witness.violation('a cause fails and has no incident', probe)
      if (isOpen && seers.length > 0 && ![0, 1].some((n) => fails(n, probe)))
        witness.violation('an incident did not end', probe)
    }
    if (elapsed() < LIVES_MS) time.after(MINUTE, look)
  }
  time.after(MINUTE, look)
  for (const n of [0, 1]) startProcess(n)
  return () => store.close()
}
