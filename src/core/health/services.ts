import { readFile } from 'node:fs/promises'
import type { Clock } from '../clock.ts'
import { ERRORTRACK_SDK } from '../env/packages.ts'
import type { GroupName, Settings } from '../env/settings.ts'
import type { Random } from '../random.ts'
import type { Service } from '../service.ts'
import { storeFaultReason } from '../store-fault.ts'
import { brokenCircuit } from './circuit.ts'
import { BUNDLED_INDEX, parseCourseIndex } from './course-index.ts'
import type { Network } from './get.ts'
import type { Probe, ProbeContext, ProbeResult } from './probe.ts'
import { reachable, serviceState } from './reach.ts'
import { degraded, failing, ok, skipped } from './verdicts.ts'

/** What the probes ask of the platform; each is a port, so that a test gives its own. */
export interface ProbeDependencies {
  readonly settings: Settings
  readonly random: Random
  /** Where rate limits are counted now. Known, never asked: health makes no call to the shared store. */
  readonly counting: () => 'local' | 'shared' | 'fallback'
  readonly clock: Clock
  /** Ids of the rules that the environment breaks (`core/env/rules.ts`). */
  readonly brokenRules: readonly string[]
  readonly store: StoreProbe
  /** The store of the API's jobs: JOB_STORE_URL where that is set, else the store. */
  readonly jobStore: StoreProbe
  /** Reads from the table of analytics; nothing to read where none is named. */
  readonly pingAnalytics: () => Promise<void>
  /** Why events are not stored now, as it was last seen. */
  readonly analyticsFull?: () => string | undefined
  readonly verifyMail: (signal: AbortSignal) => Promise<void>
  /** Can a provider's SDK be imported here? */
  readonly hasPackage: (name: string) => boolean
  readonly network?: Network
  /** Told the build that a neighbour's answer names; null is unstamped. */
  readonly noteBuild?: (service: Service, build: string | null) => void
}

export interface StoreProbe {
  readonly kind: () => Promise<'memory' | 'sqlite' | 'postgres'>
  /** A real write and a real read, and with `pages` a look at every page. */
  readonly ping: (options: { readonly pages: boolean }) => Promise<void>
}

/** A service asks the next one, which asks a third: each budget is longer than what it waits for. */
const API_BUDGET_MS = 1000
const AGENT_BUDGET_MS = 1300

/** A group's configuration; with deep, also what `live` finds. Not configured is skipped, half-configured degraded. */
function group(
  { settings }: ProbeDependencies,
  name: GroupName,
  configured: boolean,
  live?: (context: ProbeContext) => Promise<ProbeResult>,
): Probe['run'] {
  return async (context) => {
    if (settings.groups[name] === 'half-configured') return degraded('half-configured, so it is off')
    if (!configured) return skipped('not configured')
    return context.deep && live ? live(context) : ok(false)
  }
}

function errortrackState(dependencies: ProbeDependencies): Probe['run'] {
  const configuration = group(dependencies, 'errortrack', dependencies.settings.errortrack !== undefined)
  return async (context) => {
    const result = await configuration(context)
    return result.state === 'ok' && !dependencies.hasPackage(ERRORTRACK_SDK)
      ? degraded('its SDK is not installed')
      : result
  }
}

function sharedStoreState(dependencies: ProbeDependencies): Probe['run'] {
  const configuration = group(dependencies, 'sharedstore', dependencies.settings.sharedStore !== undefined)
  return async (context) =>
    dependencies.counting() === 'fallback'
      ? degraded('does not answer: rate limits count in this process, at half the quota', true)
      : configuration(context)
}

function analyticsState(dependencies: ProbeDependencies): Probe['run'] {
  const { settings, pingAnalytics, analyticsFull = () => undefined } = dependencies
  const configuration = group(dependencies, 'analytics', settings.groups.analytics === 'configured', () =>
    pingAnalytics().then(
      () => ok(true),
      () => degraded('its store cannot be read', true),
    ),
  )
  return async (context) => {
    const result = await configuration(context)
    const full = result.state === 'ok' ? analyticsFull() : undefined
    return full === undefined ? result : degraded(full, context.deep)
  }
}

async function storeState(
  store: StoreProbe,
  { live, pages, inMemory }: { readonly live: boolean; readonly pages: boolean; readonly inMemory: string },
): Promise<ProbeResult> {
  try {
    if (live) {
      // SQLite works without waiting: in this turn its time would be told as that of the probes beside it.
      await new Promise((resolve) => setImmediate(resolve))
      await store.ping({ pages })
    }
    return (await store.kind()) === 'memory' ? degraded(inMemory, live) : ok(live)
  } catch (error) {
    return failing(storeFaultReason(error))
  }
}

export function webProbes(dependencies: ProbeDependencies): readonly Probe[] {
  const { settings, store, verifyMail } = dependencies
  const { datastore, payments, site } = settings
  const live = (url: string) => (context: ProbeContext) => reachable({ ...dependencies, url }, context)
  return [
    {
      name: 'datastore',
      run: group(dependencies, 'datastore', datastore !== undefined, datastore && live(datastore.url)),
    },
    {
      name: 'payments',
      run: group(dependencies, 'payments', payments !== undefined, payments && live(payments.apiUrl)),
    },
    {
      name: 'api',
      budgetMs: API_BUDGET_MS + 300,
      run: async (context) =>
        context.deep ? serviceState('api', { ...dependencies, url: site.apiUrl }, context) : ok(false),
    },
    {
      name: 'agent',
      budgetMs: AGENT_BUDGET_MS + 300,
      run: async (context) =>
        context.deep ? serviceState('agent', { ...dependencies, url: site.agentUrl }, context) : ok(false),
    },
    {
      name: 'models',
      run: group(
        dependencies,
        'models',
        Object.values(settings.models).some((model) => model !== undefined),
      ),
    },
    {
      name: 'mail',
      run: group(dependencies, 'mail', settings.mail !== undefined, ({ signal }) =>
        verifyMail(signal).then(
          () => ok(true),
          () =>
            failing(
              signal.aborted
                ? 'its server did not answer in time'
                : 'its server cannot be reached, or refuses',
            ),
        ),
      ),
    },
    {
      name: 'store',
      run: ({ deep }) =>
        storeState(store, {
          live: deep,
          pages: deep,
          inMemory: 'in memory: subscriptions end with the process',
        }),
    },
    { name: 'sharedstore', run: sharedStoreState(dependencies) },
    { name: 'errortrack', run: errortrackState(dependencies) },
    {
      name: 'analytics',
      // Counting visitors is no reason to take a service out of rotation.
      run: analyticsState(dependencies),
    },
  ]
}

/** Packages through which the providers are reached; a provider without one is reached over plain HTTP. */
const PROVIDER_SDK = {
  hardware_a: undefined,
  cloudb: '@aws-sdk/client-braket',
  cloudqpu: '@azure/quantum-jobs',
} as const

/** Not configured is skipped; some of its variables without the others is degraded. Providers stand side by side. */
function readiness(
  { brokenRules }: ProbeDependencies,
  name: string,
  configured: boolean,
  ready: () => ProbeResult = () => ok(false),
): Probe {
  const prefix = name.replaceAll('_', '-')
  return {
    name,
    run: async () =>
      brokenRules.some((id) => id.startsWith(prefix))
        ? degraded('half-configured, so it is off')
        : configured
          ? ready()
          : skipped('not configured'),
  }
}

export function apiProbes(dependencies: ProbeDependencies): readonly Probe[] {
  const { settings, random, jobStore, hasPackage } = dependencies
  // Readiness only: a live call to a quantum computer is slow and costs money.
  const provider = (name: keyof typeof PROVIDER_SDK, credentials: unknown) =>
    readiness(dependencies, name, credentials !== undefined, () => {
      const sdk = PROVIDER_SDK[name]
      return sdk === undefined || hasPackage(sdk) ? ok(false) : degraded('its SDK is not installed')
    })
  const probes: readonly Probe[] = [
    {
      name: 'circuit',
      run: async () => {
        const broken = brokenCircuit(random)
        return broken === undefined ? ok(true) : failing(`the circuit "${broken}" gave a wrong distribution`)
      },
    },
    {
      name: 'job_store',
      run: () =>
        storeState(jobStore, { live: true, pages: false, inMemory: 'in memory: jobs end with the process' }),
    },
    { name: 'limiter', run: sharedStoreState(dependencies) },
    provider('hardware_a', settings.hardware.a),
    provider('cloudb', settings.hardware.cloudb),
    provider('cloudqpu', settings.hardware.cloudqpu),
  ]
  return probes.map((probe) => ({ ...probe, budgetMs: API_BUDGET_MS - 100 }))
}

export function agentProbes(dependencies: ProbeDependencies): readonly Probe[] {
  const { settings } = dependencies
  const { models } = settings
  // Configuration only: the agent's health never makes a model call.
  const model = (name: string, configured: boolean) => readiness(dependencies, name, configured)
  return [
    {
      name: 'api',
      budgetMs: API_BUDGET_MS + 200,
      run: (context) => serviceState('api', { ...dependencies, url: settings.site.apiUrl }, context),
    },
    {
      name: 'course_index',
      budgetMs: API_BUDGET_MS,
      run: courseIndexState(settings.agent.courseIndexPath),
    },
    model('model_a', models.a !== undefined),
    model('model_b', models.b !== undefined),
    model('model_c', models.c !== undefined),
    model('cloudmodel', models.cloudmodel !== undefined),
  ]
}

function courseIndexState(file: string | undefined): Probe['run'] {
  let reading: Promise<string | undefined> | undefined
  return async () => {
    if (file === undefined)
      return BUNDLED_INDEX.lessons.length > 0 ? ok(true) : failing('the bundled index is empty')
    // A file system that hangs keeps a thread of a small pool: one is enough, however often health is asked.
    if (reading) return failing('the configured index cannot be read: its file system does not answer')
    reading = readFile(file, 'utf8').catch(() => undefined)
    const text = await reading
    reading = undefined
    if (text === undefined) return failing('the configured index cannot be read')
    return parseCourseIndex(text) ? ok(true) : failing('the configured index is malformed')
  }
}
