import { readSettings } from '../../src/core/env/settings.ts'
import type { IncidentStore, StoredIncident } from '../../src/core/incidents/incident.ts'
import type { Channel } from '../../src/core/incidents/teller.ts'
import { silentLog } from '../../src/core/log.ts'
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
  attempts: number
  deliveries: number
  /** An attempt was lost, or its answer was: the next may repeat it. */
  unsettled: boolean
  pause: number
  /** Nothing but a deadline: the alert is sent soon after. */
  notBefore: number
}

/**
 * The alerts of two daemons over one store, which are killed while probes fail, channels hang and refuse, operators
 * silence, and the clock is stepped. Every channel sends the beginning and the end of each outage, once.
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
  const isSilent = () => silences.some(({ from, until }) => from <= clock.now() && clock.now() < until)
  const incidents = new Map<string, { readonly cause: string; closed: boolean }>()
  const told = new Map<string, Told>()
  const channels = (random.oneIn(3) ? ['webhook', 'mail', 'pager'] : ['webhook', 'mail']).map((name) => ({
    name,
    patience: name === 'mail' ? MINUTE : 20 * SECOND,
    isDown: false,
    upSince: 0,
  }))
  const toldOf = (channel: string, id: string, kind: string): Told => {
    const key = `${channel} ${id} ${kind}`
    const none = { attempts: 0, deliveries: 0, unsettled: false, pause: 0, notBefore: elapsed() }
    const found = told.get(key) ?? none
    told.set(key, found)
    return found
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
    const { open, close, claim, settle, rewind, unfinished, messages } = store.incidents
    const faulty: IncidentStore = {
      ...store.incidents,
      rewind: around(rewind, 1000),
      unfinished: around(unfinished, 1000),
      messages: around(messages, 1000),
      open: around(async (incident: StoredIncident) => {
        const { id, cause } = incident
        const opened = await open(incident)
        if (!opened) return false
        incidents.set(id, { cause, closed: false })
        witness.note(cause, `daemon ${n} opened ${id}`)
        const explains = (one: string) =>
          fails(n, one) &&
          (checks(n, one) || (elapsed() - steppedAt > NOTICED_MS && steadyMs(1 - n, one) > NOTICED_MS))
        if (needsOf(cause).some(explains))
          witness.violation('an incident of what another one explains', cause)
        return true
      }),
      close: around(async (asked: { cause: string; now: number; unseenSince: number }) => {
        await close(asked)
        const { cause } = asked
        if ((await store.incidents.list(0)).some((one) => one.cause === cause)) return
        for (const one of incidents.values()) if (one.cause === cause) one.closed = true
        witness.note(cause, `daemon ${n} closed it`)
        // Others look within a minute of a step; a process that starts just then may be earlier.
        if (process.since > steppedAt && elapsed() - steppedAt < 3 * MINUTE) return
        if (
          [0, 1].some((one) => checks(one, cause) && fails(one, cause) && steadyMs(one, cause) > 3 * MINUTE)
        )
          witness.violation('an incident was closed while its cause still fails', cause)
      }),
      claim: around(async (key) => {
        const attempt = await claim(key)
        if (attempt !== undefined) {
          const one = toldOf(key.channel, key.incident, key.kind)
          held.add(one)
          Object.assign(one, { attempts: attempt, notBefore: elapsed() + 90 * SECOND })
        }
        return attempt
      }, 40),
      settle: around(async (settlement) => {
        await settle(settlement)
        held.delete(toldOf(settlement.channel, settlement.incident, settlement.kind))
      }, 40),
    }
    const tell = (channel: (typeof channels)[number]): Channel => ({
      name: channel.name,
      async tell({ kind, incident }) {
        const one = toldOf(channel.name, incident.id, kind)
        const about = `${incident.cause} ${kind} on ${channel.name}`
        const deliver = () => {
          one.deliveries += 1
          witness.note(incident.cause, `${about} delivered`)
          if (one.deliveries > 1 && !one.unsettled && (!kind.startsWith('reminder') || steppedAt === 0))
            witness.violation('an alert was repeated though no attempt of it was lost', about)
        }
        if (isSilent()) witness.violation('an alert was sent during a silence', about)
        await time.clock.sleep(channel.isDown ? channel.patience : random.pick([50, 300, 3000]))
        const isLost = random.oneIn(channel.isDown ? 4 : 10)
        if (isLost && random.oneIn(2)) deliver()
        if (isLost) one.unsettled = true
        if (!alive) return NEVER
        if (isLost || channel.isDown || random.oneIn(8)) {
          one.pause = PAUSES[one.attempts - 1] ?? Number.POSITIVE_INFINITY
          one.notBefore = elapsed() + one.pause
          return { kind: 'transient', reason: 'no answer' }
        }
        deliver()
        return { kind: 'sent' }
      },
    })
    const alerts = core.startAlerts({
      store: { incidents: faulty },
      platform,
      settings,
      channels: channels.map(tell),
      clock,
      random,
      log: silentLog,
    })
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
  for (const channel of channels)
    every(3 * HOUR, 12 * HOUR, () => {
      channel.isDown = true
      time.after(random.pick([10 * MINUTE, HOUR, 2 * HOUR]), () => {
        Object.assign(channel, { isDown: false, upSince: elapsed() })
      })
    })
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
      silences = silences.filter(({ from }) => from <= clock.now() + SKEW_MS)
      for (const one of told.values()) one.notBefore = elapsed() + one.pause
      witness.note('', `the clock of alerts now ${new Date(clock.now()).toISOString()}`)
    })

  /** An alert that is due and that nothing holds back was sent by now. */
  function lookAtAlerts(
    id: string,
    { cause, closed }: { readonly cause: string; readonly closed: boolean },
  ): void {
    const isFlapping = [...incidents.values()].filter((one) => one.cause === cause).length > 3
    for (const { name, isDown, upSince } of channels) {
      const opened = toldOf(name, id, 'opened')
      const one = closed ? toldOf(name, id, 'closed') : opened
      if (closed && opened.attempts === 0) told.delete(`${name} ${id} closed`)
      else if (one.deliveries === 0 && one.attempts <= PAUSES.length && !isDown) {
        const held = Math.max(one.notBefore, upSince, steppedAt, silentAt)
        const bound = TOLD_MS + (isFlapping && !closed ? FLAPS_MS : 0)
        if (processes.some(({ since }) => elapsed() - Math.max(held, since) > bound))
          witness.violation(
            'an alert did not come in time',
            `${cause} ${closed ? 'closed' : 'opened'} on ${name}`,
          )
      }
    }
  }
  const look = () => {
    if (isSilent()) silentAt = elapsed()
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
