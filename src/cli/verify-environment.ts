import { randomBytes } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { type Environment, rawValue } from '../core/env/settings.ts'
import type { Finding } from '../core/finding.ts'
import { type Fingerprint, LEAST_TOKEN, openFingerprints } from '../core/fingerprints.ts'
import { causeOfStatus, text as safeText } from '../core/health/remote-report.ts'
import { parsedJson } from '../core/is-record.ts'
import { CAUSES } from '../core/network/causes.ts'
import { get } from '../core/network/get.ts'
import { recordedPlatform } from '../core/platform.ts'
import { WEB } from '../core/service.ts'
import { addressUnder } from '../core/trim-end.ts'
import { ConfigurationAnswer } from '../daemon/routes/configuration.ts'
import { type Context, EXIT, type ExitCode, wrongUsage } from './context.ts'
import { fileFinding, type LoadedEnvironment, loadEnvironment } from './environment.ts'
import { isAddress, parseAddress, readToken } from './health/targets.ts'
import { type TOKEN, unknownName, type Values } from './inputs.ts'
import { findingsOf, type Replica, type Verified, verifiedDocument } from './output/verified.ts'

interface Running extends Values<typeof TOKEN> {
  /** As `parseReplicas` takes them. */
  readonly url: readonly string[]
  /** The option that names them. */
  readonly option: string
  readonly timeout: number
}

interface VerifyOptions extends Omit<Running, 'option'> {
  readonly envFile: readonly string[]
  readonly format: 'text' | 'json' | 'github' | 'sarif'
}

type Answer = ReturnType<typeof ConfigurationAnswer.parse>

const LARGEST_BYTES = 1024 * 1024

/** Compares what runs with env files, by fingerprints: names and states only, never a value. */
export async function verifyEnvironment(context: Context, options: VerifyOptions): Promise<ExitCode> {
  const { envFile, format } = options
  const { env, origin } = await loadEnvironment(context, envFile, { withProcess: false })
  const verified = await compareRunning(context, env, { ...options, option: '--url' })
  context.stdout.write(await verifiedDocument(context, format, verified, origin, envFile))
  const { same, replicas, disagreements } = verified
  const failed = replicas.some(({ state }) => state === 'differs') || disagreements.length > 0
  return failed ? EXIT.failed : same ? EXIT.passed : EXIT.remote
}

/** What would change if running services were started with an environment: notices, and errors for services not reached. */
export async function changesAgainst(context: Context, { env, origin }: LoadedEnvironment, running: Running) {
  const verified = await compareRunning(context, env, running)
  const same = verified.replicas.filter(({ state }) => state === 'same')
  return [
    ...findingsOf(context, verified, origin).map(
      (finding): Finding =>
        finding.id === 'configuration-unreached' ? finding : { ...finding, severity: 'notice' },
    ),
    ...same.map(({ service, url }) =>
      fileFinding({
        id: 'configuration-same',
        severity: 'notice',
        services: [service],
        cause: `${service} at ${url} runs with these values and this definition.`,
        fix: 'Nothing to do.',
      }),
    ),
  ]
}

async function compareRunning(context: Context, env: Environment, options: Running): Promise<Verified> {
  const targets = options.url.flatMap((word) => parseReplicas(context, options.option, word))
  const token = await readToken(context, options, { ...context.env, ...env }, targets)
  if (token === undefined || token.length < LEAST_TOKEN)
    throw wrongUsage(
      `${options.option} needs the HEALTH_DEEP_TOKEN of the services, of at least ${LEAST_TOKEN} characters: set it in the env file or the environment, or use --token-env or --token-file.`,
    )
  // Fingerprints of the files are shared by all replicas, and so is the nonce, so that they can be compared.
  const nonce = randomBytes(16).toString('hex')
  const [fingerprint, ...answers] = await Promise.all([
    openFingerprints(token, nonce),
    ...targets.map((target) => ask(context, { ...target, token, nonce, timeoutMs: options.timeout })),
  ])
  const own = new Map<string, Promise<string>>()
  const replicas: Replica[] = []
  for (const [index, { service, url }] of targets.entries()) {
    const answer = answers[index] ?? 'no answer'
    const found: Found =
      typeof answer === 'string'
        ? { state: 'unreached', reason: answer }
        : await compare(context, answer, env, async (variable, value) => {
            const ours = own.get(variable.name) ?? fingerprint(variable, value)
            own.set(variable.name, ours)
            return ours
          })
    replicas.push({ service, url, ...found })
  }
  return {
    same: replicas.every(({ state }) => state === 'same'),
    replicas,
    disagreements: disagreements(answers.filter((answer) => typeof answer !== 'string')),
    notCompared: Object.keys(env).filter(
      (name) => rawValue(env, name) !== undefined && context.platform.contract.find(name) === undefined,
    ).length,
  }
}

/** `web=https://a.example,https://b.example`: two replicas of one service, which is web when it is not named. */
function parseReplicas({ platform }: Context, option: string, word: string) {
  const [first = '', ...more] = word.split(',')
  const name = isAddress(first) ? WEB : first.slice(0, Math.max(first.indexOf('='), 0)).trim()
  const known = platform.services.flatMap((one) => (one.port === undefined ? [] : [one.name]))
  return [first, ...more].map((one, index) => {
    const named = index > 0 || isAddress(first) ? `${name}=${one.trim()}` : one
    const [service, url] = parseAddress(platform.services, named, option)
    if (!known.includes(service)) throw unknownName({ kind: 'service', name: service, known })
    return { service, url, health: '' }
  })
}

async function ask(
  { clock, signal }: Context,
  input: Record<'service' | 'url' | 'token' | 'nonce', string> & { readonly timeoutMs: number },
): Promise<Answer | string> {
  const { service, url, token, nonce, timeoutMs } = input
  const outcome = await get({
    url: addressUnder(url, '/api/configuration', `?nonce=${nonce}`),
    headers: { accept: 'application/json', authorization: `Bearer ${token}` },
    timeoutMs,
    signal,
    largestBytes: LARGEST_BYTES,
    wantsBody: (status) => status === 200 || status === 400,
    monotonic: clock.monotonic,
  })
  if (!outcome.answered) return CAUSES[outcome.cause].meaning
  if (outcome.status === 404)
    return 'it does not show its configuration: set HEALTH_DEEP_TOKEN there, or update an older build'
  const cause = causeOfStatus(outcome.status)
  if (cause !== undefined) return CAUSES[cause].meaning
  const said = parsedJson(outcome.body)
  const answer = ConfigurationAnswer.safeParse(said)
  if (!answer.success)
    return (
      safeText((said as { readonly message?: unknown } | null | undefined)?.message) ??
      `it answers with ${outcome.status}, and not with its configuration`
    )
  if (answer.data.service !== service) return CAUSES.wrong_service.meaning
  return answer.data.nonce === nonce ? answer.data : 'its answer is for another request: something caches it'
}

type Found = Omit<Replica, 'service' | 'url'>

async function compare(context: Context, answer: Answer, env: Environment, fingerprint: Fingerprint) {
  const variables: NonNullable<Replica['variables']>[number][] = []
  for (const { fingerprint: theirs, ...variable } of answer.variables) {
    const { name, source, perReplica } = variable
    const value = rawValue(env, name)
    const isSet = source !== 'default' && source !== 'unset'
    if (value === undefined && !isSet) continue
    const isSame = value !== undefined && theirs === (await fingerprint(variable, value))
    const state = value === undefined ? 'extra' : isSame ? 'same' : isSet ? 'differs' : 'missing'
    variables.push({ name, state, source, perReplica })
  }
  const known = new Set(answer.variables.map(({ name }) => name))
  for (const { name, services, perReplica } of context.platform.contract.variables)
    if (services.includes(answer.service) && !known.has(name) && rawValue(env, name) !== undefined)
      variables.push({ name, state: 'missing', source: 'unset', perReplica })
  const definition = compareDefinition(context, answer.platform)
  const definitionDiffers = definition === 'differs' || definition === 'lessons differ'
  const differs =
    definitionDiffers || variables.some(({ state, perReplica }) => state !== 'same' && !perReplica)
  const { startedAt, build, changedFiles } = answer
  const older = definitionDiffers && isWrittenSince(context, Date.parse(startedAt))
  const found: Found = { state: differs ? 'differs' : 'same', startedAt, build, definition }
  return { ...found, ...(older && { older }), changedFiles, variables }
}

function compareDefinition(context: Context, theirs: Answer['platform']): NonNullable<Replica['definition']> {
  const { name, fingerprint } = recordedPlatform(context.platform)
  if (theirs.fingerprint === fingerprint) return 'same'
  if (fingerprint !== null && theirs.name !== name) return 'differs'
  if (theirs.fingerprint === null || (fingerprint === null && context.searched !== undefined))
    return 'not compared'
  return context.platform.definition?.lessons() === theirs.lessons ? 'differs' : 'lessons differ'
}

/** Whether files of the definition were written after a time. */
function isWrittenSince({ platform: { definition } }: Context, since: number): boolean {
  const isNewer = (file: string) => (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) > since
  const inside = (place: string) =>
    statSync(place, { throwIfNoEntry: false })?.isDirectory()
      ? readdirSync(place, { recursive: true, encoding: 'utf8' }).map((name) => path.join(place, name))
      : []
  return (
    definition !== undefined &&
    [definition.file, ...definition.assets].some((place) => isNewer(place) || inside(place).some(isNewer))
  )
}

/** Names of the variables that replicas of one service hold different values of. */
function disagreements(answers: readonly Answer[]): readonly string[] {
  const all = answers.flatMap(({ service, variables }) =>
    variables.flatMap((one) => (one.perReplica ? [] : [{ ...one, key: `${service} ${one.name}` }])),
  )
  const differing = [...Map.groupBy(all, ({ key }) => key).values()].filter(
    (of) => new Set(of.map(({ fingerprint }) => fingerprint)).size > 1,
  )
  return [...new Set(differing.flatMap((of) => of[0]?.name ?? []))]
}
