import { readFile } from 'node:fs/promises'
import type { GroupName, Settings } from '../env/settings.ts'
import type { Random } from '../random.ts'
import { ROUTES } from '../routes.ts'
import { brokenCircuit } from './circuit.ts'
import { BUNDLED_INDEX, parseCourseIndex } from './course-index.ts'
import type { Probe, ProbeContext, ProbeResult } from './probe.ts'
import { reach } from './reach.ts'

/** What the probes ask of the platform; each is a port, so that a test gives its own. */
export interface ProbeDependencies {
  readonly settings: Settings
  readonly random: Random
  /** Where rate limits are counted now. Known, never asked: health makes no call to the shared store. */
  readonly counting: () => 'local' | 'shared' | 'fallback'
  readonly store: {
    readonly kind: () => Promise<'memory' | 'sqlite' | 'postgres'>
    readonly ping: () => Promise<void>
  }
  readonly verifyMail: (signal: AbortSignal) => Promise<void>
  /** Can a provider's SDK be imported here? */
  readonly hasPackage: (name: string) => boolean
}

const ok = (checked: boolean): ProbeResult => ({ state: 'ok', checked })
const degraded = (reason: string, checked = false): ProbeResult => ({ state: 'degraded', checked, reason })
const skipped = (reason: string): ProbeResult => ({ state: 'skipped', checked: false, reason })
const failing = (reason: string): ProbeResult => ({ state: 'failing', checked: true, reason })

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

function sharedStoreState(dependencies: ProbeDependencies): Probe['run'] {
  const configuration = group(dependencies, 'sharedstore', dependencies.settings.sharedStore !== undefined)
  return async (context) =>
    dependencies.counting() === 'fallback'
      ? degraded('does not answer: rate limits count in this process, at half the quota', true)
      : configuration(context)
}

/** Another service of the platform, asked for its shallow health: reachable and not failing. */
async function serviceState(url: string, path: string, signal: AbortSignal): Promise<ProbeResult> {
  const { status, body } = await reach(`${url}${path}`, signal).catch(() => ({ status: 0, body: '' }))
  if (status === 0) return failing('cannot be reached')
  const state = stateOf(body)
  if (state === undefined) return failing('answers, but not as a service of the platform')
  return state === 'failing'
    ? failing('is failing')
    : state === 'degraded'
      ? degraded('is degraded', true)
      : ok(true)
}

/** The JSON state, never a word in the text: "unhealthy" contains "healthy". */
function stateOf(body: string): string | undefined {
  try {
    const { state } = JSON.parse(body) as { state?: unknown }
    return state === 'ok' || state === 'degraded' || state === 'failing' ? state : undefined
  } catch {
    return undefined
  }
}

export function webProbes(dependencies: ProbeDependencies): readonly Probe[] {
  const { settings, store, verifyMail } = dependencies
  const reachable =
    (url: string) =>
    async ({ signal }: ProbeContext) => {
      const { status } = await reach(url, signal).catch(() => ({ status: 0 }))
      if (status === 0) return failing('cannot be reached')
      return status >= 500 ? failing('answers with an error') : ok(true)
    }
  const { datastore, payments } = settings
  return [
    {
      name: 'datastore',
      run: group(dependencies, 'datastore', datastore !== undefined, datastore && reachable(datastore.url)),
    },
    {
      name: 'payments',
      run: group(dependencies, 'payments', payments !== undefined, payments && reachable(payments.apiUrl)),
    },
    {
      name: 'api',
      run: async ({ deep, signal }) =>
        deep ? serviceState(settings.site.apiUrl, ROUTES.apiHealth.path, signal) : ok(false),
    },
    {
      name: 'agent',
      run: async ({ deep, signal }) =>
        deep ? serviceState(settings.site.agentUrl, ROUTES.agentHealth.path, signal) : ok(false),
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
      run: group(dependencies, 'mail', settings.mail !== undefined, async ({ signal }) => {
        await verifyMail(signal)
        return ok(true)
      }),
    },
    {
      name: 'store',
      run: async ({ deep }) => {
        if (deep) await store.ping()
        return (await store.kind()) === 'memory'
          ? degraded('in memory: subscriptions end with the process', deep)
          : ok(deep)
      },
    },
    { name: 'sharedstore', run: sharedStoreState(dependencies) },
    { name: 'errortrack', run: group(dependencies, 'errortrack', settings.errortrack !== undefined) },
    { name: 'analytics', run: group(dependencies, 'analytics', settings.groups.analytics === 'configured') },
  ]
}

/** Packages through which the providers are reached; a provider without one is reached over plain HTTP. */
const PROVIDER_SDK = {
  hardware_a: undefined,
  cloudb: '@aws-sdk/client-braket',
  cloudqpu: '@azure/quantum-jobs',
} as const

export function apiProbes(dependencies: ProbeDependencies): readonly Probe[] {
  const { settings, random, store, hasPackage } = dependencies
  const { hardware } = settings
  const provider = (name: keyof typeof PROVIDER_SDK, credentials: unknown): Probe => ({
    name,
    // Readiness only: a live call to a quantum computer is slow and costs money.
    run: async () => {
      if (credentials === undefined)
        return settings.groups.hardware === 'half-configured'
          ? degraded('hardware is half-configured')
          : skipped('not configured')
      const sdk = PROVIDER_SDK[name]
      return sdk === undefined || hasPackage(sdk) ? ok(false) : degraded('its SDK is not installed')
    },
  })
  return [
    {
      name: 'circuit',
      run: async () => {
        const broken = brokenCircuit(random)
        return broken === undefined ? ok(true) : failing(`the circuit "${broken}" gave a wrong distribution`)
      },
    },
    {
      name: 'job_store',
      run: async () => {
        await store.ping()
        return (await store.kind()) === 'memory'
          ? degraded('in memory: jobs end with the process', true)
          : ok(true)
      },
    },
    { name: 'limiter', run: sharedStoreState(dependencies) },
    provider('hardware_a', hardware.a),
    provider('cloudb', hardware.cloudb),
    provider('cloudqpu', hardware.cloudqpu),
  ]
}

export function agentProbes({ settings }: ProbeDependencies): readonly Probe[] {
  const { models } = settings
  // Configuration only: the agent's health never makes a model call.
  const model = (name: string, configured: boolean): Probe => ({
    name,
    run: async () =>
      configured
        ? ok(false)
        : settings.groups.models === 'half-configured'
          ? degraded('models are half-configured')
          : skipped('not configured'),
  })
  return [
    { name: 'api', run: ({ signal }) => serviceState(settings.site.apiUrl, ROUTES.apiHealth.path, signal) },
    {
      name: 'course_index',
      run: async () => {
        const file = settings.agent.courseIndexPath
        if (file === undefined)
          return BUNDLED_INDEX.lessons.length > 0 ? ok(true) : failing('the bundled index is empty')
        const text = await readFile(file, 'utf8').catch(() => undefined)
        if (text === undefined) return failing('the configured index cannot be read')
        return parseCourseIndex(text) ? ok(true) : failing('the configured index is malformed')
      },
    },
    model('model_a', models.a !== undefined),
    model('model_b', models.b !== undefined),
    model('model_c', models.c !== undefined),
    model('cloudmodel', models.cloudmodel !== undefined),
  ]
}
