import { succeeds } from '../calls.ts'
import { ERRORTRACK_SDK } from '../env/group-warnings.ts'
import type { Settings } from '../env/settings.ts'
import { storeFaultReason } from '../errors.ts'
import { given } from '../given.ts'
import {
  type HeartbeatDefinition,
  type HeartbeatRecord,
  heartbeatProbeName,
  heartbeatState,
} from '../heartbeats.ts'
import { within } from '../host.ts'
import { holdsText } from '../mail/holds.ts'
import { MailFault } from '../mail/outcome.ts'
import { lastReport } from '../reporting/facade.ts'
import { minute } from '../sentences.ts'
import { namesakeProbeName, type ServiceDefinition, WEB } from '../service.ts'
import type { ProbeDefinition, ProbeParts, StoreProbe } from './probe.ts'
import { degraded, failing, ok, type ProbeContext, type ProbeResult, skipped } from './probe.ts'

/** Fails while a job is late or failed. It looks only on deep requests: a late backup must not stop web. */
export function heartbeatProbe(definition: HeartbeatDefinition): ProbeDefinition {
  const { name, label } = definition
  return {
    name: heartbeatProbeName(name),
    service: WEB,
    label: label ?? `Heartbeat ${name}`,
    meaning: 'a job of yours did not run, or failed',
    dependsOn: () => ['store'],
    open({ clock, heartbeat }) {
      let trouble: ProbeResult | undefined
      return async ({ deep }) => {
        if (!deep || heartbeat === undefined) return ok(false)
        const now = clock.now()
        const record = await heartbeat({ name, now }).catch(() => undefined)
        // If the store cannot be read, its own probe says so, and what was late did not report meanwhile.
        if (record === undefined) return trouble ?? skipped('the store cannot be read')
        const { state } = heartbeatState(definition, record, now)
        const reason = state === 'failed' ? failedReason(record) : lateReason(record)
        trouble = state === 'ok' ? undefined : failing(reason)
        return trouble ?? ok(true)
      }
    },
  }
}

const failedReason = ({ exitCode, failedAt = 0 }: HeartbeatRecord) =>
  `it reported a failure${exitCode === undefined ? '' : ` (exit code ${exitCode})`} at ${minute(failedAt)}`

const lateReason = ({ beatAt, since }: HeartbeatRecord) =>
  beatAt === undefined
    ? `it has never reported, and is expected since ${minute(since)}`
    : `it last reported at ${minute(beatAt)}`

/** Loaded at the first live check, because commands that check nothing live read these definitions too. */
const reach = () => import('./reach.ts')

type Check = (context: ProbeContext) => Promise<ProbeResult>

/** The check, degraded while all is well but for what `trouble` says. */
const unless =
  (
    check: Check,
    trouble: (context: ProbeContext) => string | undefined | Promise<string | undefined>,
    isChecked?: boolean,
  ): Check =>
  async (context) => {
    const result = await check(context)
    const reason = result.state === 'ok' ? await trouble(context) : undefined
    return reason === undefined ? result : degraded(reason, isChecked ?? result.checked)
  }

/** A check of a group's configuration, and on a deep request `live`: not configured is skipped, half-configured degraded. */
export function configured(
  settings: Settings,
  group: string,
  live?: Check,
  isConfigured = settings.groups.get(group) === 'configured',
): Check {
  return async (context) => {
    if (settings.groups.get(group) === 'half-configured') return degraded('half-configured, so it is off')
    if (!isConfigured)
      return settings.lacking.has(group) ? degraded('required, and not set') : skipped('not configured')
    return context.deep && live ? live(context) : ok(false)
  }
}

/** A service asks the next one, which asks a third: each deadline is longer than what it waits for. */
const NEIGHBOUR_DEADLINE_MS = 1300

/** A probe that asks another service for its health, if its address is set. Web asks only on a deep request. */
export function neighbourProbe(
  target: ServiceDefinition,
  options: { service?: string; deadlineMs?: number; isNamesake?: boolean } = {},
): ProbeDefinition {
  const { service = WEB, deadlineMs = NEIGHBOUR_DEADLINE_MS, isNamesake } = options
  return {
    name: target.name,
    // What explains a fault of the service explains this one.
    ...(isNamesake && { name: namesakeProbeName(target.name), dependsOn: () => [target.name] }),
    service,
    deadlineMs,
    meaning: 'not checked, as its address is not set',
    target: ({ addresses }) => addresses.get(target.name),
    open: (parts) => {
      const url = parts.settings.addresses.get(target.name)
      return async (context) => {
        if (url === undefined) return skipped('its address is not set')
        if (service === WEB && !context.deep) return ok(false)
        return (await reach()).serviceState(target, { ...parts, url }, context)
      }
    },
  }
}

/** A probe of an integration that is reached at an address of its own. */
function integrationProbe(
  name: 'datastore' | 'payments',
  addressOf: (settings: Settings) => string | undefined,
  label?: string,
): ProbeDefinition {
  return {
    name,
    service: WEB,
    group: name,
    ...given({ label }),
    target: addressOf,
    open: (parts) => {
      const url = addressOf(parts.settings) ?? ''
      const live: Check = async (context) => (await reach()).reachable({ ...parts, url }, context)
      return configured(parts.settings, name, live, url !== '')
    },
  }
}

const datastoreReached = integrationProbe('datastore', ({ datastore }) => datastore?.url, 'Data store')
const NO_KEYS = 'the keys that tokens are verified with cannot be had'
export const datastoreProbe: ProbeDefinition = {
  ...datastoreReached,
  open: (parts) =>
    unless(datastoreReached.open(parts), () => (parts.keysMissing?.() ? NO_KEYS : undefined), true),
}
export const paymentsProbe = integrationProbe('payments', ({ payments }) => payments?.apiUrl)

export const mailProbe: ProbeDefinition = {
  name: 'mail',
  service: WEB,
  group: 'mail',
  open: (parts) => {
    const { settings, verifyMail, confirmationsExhausted = () => false } = parts
    const { mailHolds = async () => [], mailRefused = async () => false } = parts
    const reasonOf = (error: unknown, { aborted }: AbortSignal) => {
      if (aborted) return 'its server did not answer in time'
      return error instanceof MailFault ? error.message : 'its server cannot be reached, or refuses'
    }
    const live: Check = ({ signal }) =>
      verifyMail(signal).then(
        () => ok(true),
        (error: unknown) => failing(reasonOf(error, signal)),
      )
    const own: Check = async (context) => (context.deep ? live(context) : ok(false))
    const configuration = configured(settings, 'mail', live, settings.mail !== undefined)
    return unless(parts.hasOwnMailer ? own : configuration, async ({ deep }) => {
      // If the store cannot be read, or hangs, its own probe says so.
      const [holds, isRefused] = await Promise.all([
        within(HOLDS_MS, mailHolds(), () => []).catch(() => []),
        within(HOLDS_MS, mailRefused(), () => false).catch(() => false),
      ])
      const paused = holdsText(holds, deep && settings.health.deepToken !== undefined)
      return paused ?? (isRefused ? REFUSED : confirmationsExhausted() ? EXHAUSTED : undefined)
    })
  },
}
const HOLDS_MS = 500
const REFUSED = 'its provider refuses the mail of this platform'
const EXHAUSTED = 'the confirmations that may be mailed in a day are used up'

export const storeProbe: ProbeDefinition = {
  name: 'store',
  service: WEB,
  open: ({ store, storeBusy }) => {
    const inMemory = 'in memory: subscriptions end with the process'
    return unless(
      ({ deep }) => storeState(store, { live: deep, pages: deep, inMemory }),
      () => storeBusy?.(),
    )
  },
}

/** Degraded while replicas that share a store run with different values or definitions, as in the middle of a deploy. */
const configurationProbe: ProbeDefinition = {
  name: 'configuration',
  service: WEB,
  applies: ({ store }) => store.address?.kind === 'postgres',
  meaning: 'what a visitor gets depends on the replica that answers',
  dependsOn: () => ['store'],
  open:
    ({ isConfiguredApart = async () => false }) =>
    async ({ deep }) => {
      if (!deep) return ok(false)
      const isApart = await isConfiguredApart().catch(() => undefined)
      if (isApart === undefined) return skipped('the store cannot be read')
      return isApart ? degraded(APART, true) : ok(true)
    },
}
const APART = 'replicas run with different configurations: platformctl env verify names the variables'

export const sharedStoreProbe: ProbeDefinition = {
  name: 'sharedstore',
  service: WEB,
  group: 'sharedstore',
  label: 'Shared store',
  target: ({ sharedStore }) => sharedStore?.url,
  open: sharedStoreState,
}

export const errortrackProbe: ProbeDefinition = {
  name: 'errortrack',
  service: WEB,
  group: 'errortrack',
  label: 'Error reporting',
  open: ({ settings, hasPackage }) => {
    const configuration = configured(settings, 'errortrack', undefined, settings.errortrack !== undefined)
    return unless(configuration, () => {
      if (!hasPackage(ERRORTRACK_SDK)) return 'its SDK is not installed'
      return lastReport.lost && `the tracker did not take the last report (${lastReport.lost})`
    })
  },
}

export const analyticsProbe: ProbeDefinition = {
  name: 'analytics',
  service: WEB,
  group: 'analytics',
  open: ({ settings, pingAnalytics, analyticsFull }) => {
    // Only degraded: counting visitors is no reason to take a service out of rotation.
    const configuration = configured(settings, 'analytics', async () =>
      (await succeeds(pingAnalytics())) ? ok(true) : degraded('its store cannot be read', true),
    )
    return unless(configuration, () => analyticsFull?.())
  },
}

/** In the order of the health bodies. */
export const engineProbes = [
  datastoreProbe,
  paymentsProbe,
  mailProbe,
  storeProbe,
  sharedStoreProbe,
  errortrackProbe,
  analyticsProbe,
  configurationProbe,
] as const

export function sharedStoreState({ settings, counting, untrustedProxy = () => false }: ProbeParts): Check {
  const configuration = configured(settings, 'sharedstore', undefined, settings.sharedStore !== undefined)
  return async (context) =>
    counting() === 'fallback'
      ? degraded('does not answer: rate limits count in this process, at half the quota', true)
      : untrustedProxy()
        ? degraded('a proxy in front is not in TRUST_PROXY, so all its visitors count as one client', true)
        : configuration(context)
}

export async function storeState(
  store: StoreProbe,
  { live, pages, inMemory }: { readonly live: boolean; readonly pages: boolean; readonly inMemory: string },
): Promise<ProbeResult> {
  try {
    if (live) {
      // SQLite blocks the event loop, and in this tick its time would count as the other probes' latency.
      await new Promise((resolve) => setImmediate(resolve))
      await store.ping({ pages })
    }
    return (await store.kind()) === 'memory' ? degraded(inMemory, live) : ok(live)
  } catch (error) {
    return failing(storeFaultReason(error))
  }
}
