import {
  configured,
  engineProbes,
  neighbourProbe,
  sharedStoreState,
  storeState,
} from '../../core/health/engine-probes.ts'
import type { ProbeDefinition, ProbeResult } from '../../core/health/probe.ts'
import { degraded, failing, ok, skipped } from '../../core/health/probe.ts'
import { jsonObject } from '../../core/is-record.ts'
import { brokenCircuit } from './circuit.ts'
import { agent, api } from './contract.ts'
import { CLOUDQPU } from './groups.ts'

/** Whether a text is an index of the course for the agent: one entry per lesson. */
function isCourseIndex(text: string): boolean {
  const { version, lessons } = jsonObject(text)
  return (
    version === 1 &&
    Array.isArray(lessons) &&
    lessons.length > 0 &&
    lessons.every(
      (lesson) =>
        Number.isInteger(lesson?.day) && typeof lesson?.title === 'string' && Array.isArray(lesson?.topics),
    )
  )
}

/** Services check each other in a chain, so each deadline is longer than the one it waits for. */
const API_DEADLINE_MS = 1000
const AGENT_DEADLINE_MS = 1300
const OF_API = { service: api.name, deadlineMs: API_DEADLINE_MS - 100 }

const models: ProbeDefinition = {
  name: 'models',
  service: 'web',
  group: 'models',
  open: ({ settings }) => configured(settings, 'models'),
}

const circuit: ProbeDefinition = {
  ...OF_API,
  name: 'circuit',
  open:
    ({ random }) =>
    async () => {
      const broken = brokenCircuit(random)
      return broken === undefined ? ok(true) : failing(`the circuit "${broken}" gave a wrong distribution`)
    },
}

const jobStore: ProbeDefinition = {
  ...OF_API,
  name: 'job_store',
  // Unless it has an address of its own, it is the store.
  dependsOn: ({ store }) => (store.jobStore === undefined ? ['store'] : []),
  open:
    ({ jobStore }) =>
    () =>
      storeState(jobStore, { live: true, pages: false, inMemory: 'in memory: jobs end with the process' }),
}

const limiter: ProbeDefinition = {
  ...OF_API,
  name: 'limiter',
  group: 'sharedstore',
  label: 'Rate limiter',
  target: ({ sharedStore }) => sharedStore?.url,
  open: sharedStoreState,
}

/** A provider of hardware or models, with the variables that it needs and the package that calls it. */
interface Provider {
  readonly name: string
  readonly label?: string
  readonly of: readonly string[]
  readonly sdk?: string
  /** The variable that says where it looks, for operators. */
  readonly address?: string
}

const HARDWARE: readonly Provider[] = [
  { name: 'hardware_a', of: ['HARDWARE_A_TOKEN', 'HARDWARE_A_INSTANCE'] },
  {
    name: 'cloudb',
    label: 'Cloud B',
    of: ['CLOUDB_ACCESS_KEY_ID', 'CLOUDB_SECRET_ACCESS_KEY', 'CLOUDB_REGION'],
    sdk: '@aws-sdk/client-braket',
  },
  { name: 'cloudqpu', label: 'Cloud QPU', of: CLOUDQPU, sdk: '@azure/quantum-jobs' },
]

const PROVIDERS: readonly Provider[] = [
  { name: 'model_a', of: ['MODEL_A_API_KEY'] },
  { name: 'model_b', of: ['MODEL_B_API_KEY'] },
  { name: 'model_c', of: ['MODEL_C_API_KEY'] },
  {
    name: 'cloudmodel',
    label: 'Cloud model',
    of: ['CLOUDMODEL_API_KEY', 'CLOUDMODEL_API_ENDPOINT', 'CLOUDMODEL_API_DEPLOYMENT'],
    address: 'CLOUDMODEL_API_ENDPOINT',
  },
]

/** Readiness only: a live call to a quantum computer is slow, and one to a model costs money. Providers are listed side by side. */
function readiness(group: string, at: Pick<ProbeDefinition, 'service' | 'deadlineMs'>) {
  return ({ name, label, of, sdk, address }: Provider): ProbeDefinition => ({
    ...at,
    name,
    group,
    ...(label && { label }),
    ...(address && { target: ({ value }) => value(address) }),
    open: ({ settings, hasPackage }) => {
      const rules = name.replaceAll('_', '-')
      return async (): Promise<ProbeResult> => {
        if (settings.broken.some((id) => id.startsWith(rules)))
          return degraded('half-configured, so it is off')
        if (of.some((variable) => settings.value(variable) === undefined)) return skipped('not configured')
        return sdk === undefined || hasPackage(sdk) ? ok(false) : degraded('its SDK is not installed')
      }
    },
  })
}

const courseIndex: ProbeDefinition = {
  name: 'course_index',
  service: agent.name,
  deadlineMs: API_DEADLINE_MS,
  open: ({ settings }) => {
    const file = settings.value('COURSE_INDEX_PATH')
    let reading: Promise<string | undefined> | undefined
    return async () => {
      // The bundled index comes with the agent.
      if (file === undefined) return ok(true)
      // A file system that hangs keeps a thread of a small pool: one is enough, however often health is asked.
      if (reading) return failing('the configured index cannot be read: its file system does not answer')
      // Imported here: it loads a dozen modules of Node that a command line does without.
      reading = import('node:fs/promises')
        .then(({ readFile }) => readFile(file, 'utf8'))
        .catch(() => undefined)
      const text = await reading
      reading = undefined
      if (text === undefined) return failing('the configured index cannot be read')
      return isCourseIndex(text) ? ok(true) : failing('the configured index is malformed')
    }
  },
}

const [datastore, payments, ...others] = engineProbes

export const learningProbes: readonly ProbeDefinition[] = [
  datastore,
  payments,
  neighbourProbe(api, { deadlineMs: API_DEADLINE_MS + 300 }),
  neighbourProbe(agent, { deadlineMs: AGENT_DEADLINE_MS + 300 }),
  models,
  ...others,
  circuit,
  jobStore,
  limiter,
  ...HARDWARE.map(readiness('hardware', OF_API)),
  neighbourProbe(api, { service: agent.name, deadlineMs: API_DEADLINE_MS + 200 }),
  courseIndex,
  ...PROVIDERS.map(readiness('models', { service: agent.name })),
]
