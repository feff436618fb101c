import { DAY_MS } from '../durations.ts'
import type { MailRoute, Settings } from '../env/settings.ts'
import { given } from '../given.ts'
import { CERTIFICATE_DAYS } from '../health/verdict.ts'
import type { SendOutcome } from '../mail/mailer.ts'
import { isHere, portOf } from '../network/connect.ts'
import { proxyOf } from '../network/proxy.ts'
import type { ResolvedPlatform } from '../platform.ts'
import { counted } from '../sentences.ts'
import type { StoreSchema } from '../store/schema.ts'
import { failed, type LiveCheck, passed, type Step, skipped, warning } from './live.ts'
import { isAddress, type LiveNetwork } from './network.ts'

type StepContext = Pick<LiveDependencies, 'network' | 'now'>

/** Whether an address may be plain http: `never` for one that visitors or keys use in production. */
type PlainHttp = 'allowed' | 'never'

/** A step about one variable, or about what none names. */
export function step(check: LiveCheck, variable: string | undefined, run: Step['run'], place?: string): Step {
  return { check, variables: variable === undefined ? [] : [variable], run, ...given({ place }) }
}

const skip = (check: LiveCheck, variable: string, detail: string) =>
  step(check, variable, async () => skipped(detail))

/** Name, an answer and certificate of an http(s) address: three steps, in this order. */
export function endpointSteps(context: StepContext, url: string, variable: string, plainHttp: PlainHttp) {
  const at = new URL(url)
  const reachability = async (signal: AbortSignal) => {
    // No key is sent, so a bad certificate is left to the step that says what is wrong with it.
    const { status } = await context.network.get({ url, anyCertificate: true }, signal)
    return status >= 500
      ? failed('live-unhealthy', `answers with an error (${status})`)
      : passed(`answers (${status})`)
  }
  return around(context, at, step('reachability', variable, reachability, at.origin), plainHttp)
}

/** The name before the step that reaches an address, and the certificate after it. */
function around(context: StepContext, at: URL, reachability: Step, plainHttp: PlainHttp): [Step, Step, Step] {
  const [variable = ''] = reachability.variables
  const isProxied = proxyOf(at) !== undefined
  return [
    nameStep(context, at, variable),
    { ...reachability, isProxied },
    { ...encryptionStep(context, at, variable, plainHttp), isProxied },
  ]
}

/** The steps for an address that a key is sent to. On this machine itself it may be plain http, even in production. */
export function keyedEndpoint(context: LiveDependencies, url: string, variable: string) {
  const plainHttp = isHere(new URL(url)) ? 'allowed' : plainHttpIn(context.settings)
  return endpointSteps(context, url, variable, plainHttp)
}

/** Whether an address that visitors or keys use may be plain http: not in production. */
export function plainHttpIn({ site }: Pick<Settings, 'site'>): PlainHttp {
  return site.environment === 'production' ? 'never' : 'allowed'
}

/** The certificate of an address; of http://, whether it may be without. */
export function encryptionStep(context: StepContext, url: URL, variable: string, plainHttp: PlainHttp): Step {
  if (url.protocol === 'smtp:' && isHere(url))
    return skip('certificate', variable, 'on this machine none is needed')
  if (url.protocol !== 'http:') return certificateStep(context, url, variable)
  const fault = 'is absent: http:// is not encrypted, and DEPLOY_ENVIRONMENT is production'
  return plainHttp === 'allowed'
    ? skip('certificate', variable, 'http:// has none')
    : step('certificate', variable, async () => failed('live-plain-text', fault))
}

export function nameStep({ network }: StepContext, url: URL, variable: string): Step {
  if (isAddress(url)) return skip('name resolution', variable, 'an address needs none')
  if (proxyOf(url)) return skip('name resolution', variable, 'the proxy resolves it')
  const run = async (signal: AbortSignal) =>
    passed(counted(await network.addresses(url, signal), 'address', 'es'))
  return step('name resolution', variable, run, url.hostname)
}

const placeOf = (url: URL) => `${url.hostname}:${portOf(url)}`

/** The steps for an address that only the real message may be sent to: a request for it would count as one. */
export function connectionSteps(context: StepContext, url: string, variable: string) {
  const at = new URL(url)
  const run = async (signal: AbortSignal) => {
    await context.network.connect(at, signal)
    return passed('accepts connections')
  }
  return around(context, at, step('reachability', variable, run, placeOf(at)), 'allowed')
}

export function certificateStep({ network, now }: StepContext, url: URL, variable: string): Step {
  const run = async (signal: AbortSignal) => {
    const { fault, validFrom, validTo } = await network.certificate(url, signal)
    const left = Math.floor((validTo - now) / DAY_MS)
    if (fault !== undefined) return failed('live-certificate', sentence(fault, left))
    // A certificate of a few days is renewed in its last third.
    const soon = Math.min(CERTIFICATE_DAYS, Math.floor((validTo - validFrom) / DAY_MS / 3))
    return left < soon
      ? warning('live-certificate-expiring', `ends in ${counted(left, 'day')}`)
      : passed(`${counted(left, 'day')} left`)
  }
  return step('certificate', variable, run, placeOf(url))
}

function sentence(fault: string, left: number): string {
  if (fault === 'CERT_HAS_EXPIRED') return `expired ${counted(Math.max(1, -left), 'day')} ago`
  if (fault === 'CERT_NOT_YET_VALID') return 'is not valid yet'
  if (fault === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'is made out to another name'
  if (/SELF_SIGNED/.test(fault)) return 'is signed by nobody that this machine trusts'
  if (/UNABLE_TO/.test(fault)) return 'has a chain that leads to nobody this machine trusts'
  return 'cannot be verified'
}

/** A step that sends a request with a key: the key is refused, accepted, or cannot be judged by the answer. */
export function keyStep(
  network: LiveNetwork,
  check: Extract<LiveCheck, 'authorisation' | 'service role'>,
  variable: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  /** A status besides 2xx that only an accepted key gets. */
  accepts?: number,
): Step {
  return step(check, variable, async (signal) => {
    const { status } = await network.get({ url, headers }, signal)
    if (status === 401 || status === 403) return failed('live-unauthorised', `is refused (${status})`)
    if ((status >= 200 && status < 300) || status === accepts) return passed('is accepted')
    return status >= 500
      ? failed('live-unhealthy', `cannot be tried: an error comes back (${status})`)
      : skipped(`cannot be told from the answer (${status})`)
  })
}

export interface LiveDependencies
  extends Pick<ResolvedPlatform, 'name' | 'contract' | 'services' | 'probes'> {
  readonly settings: Settings
  readonly network: LiveNetwork
  readonly now: number
  readonly isSet: (name: string) => boolean
  /** Connects and authenticates to the mail transport without sending. */
  readonly verifyMail: (signal: AbortSignal) => Promise<void>
  /** The store's schema, read without changing it; undefined when there is no store yet. Rejects when a daemon could not use it. */
  readonly storeSchema: (() => Promise<StoreSchema | undefined>) | undefined
  /** The same of JOB_STORE_URL. */
  readonly jobSchema?: LiveDependencies['storeSchema']
  /** Sends a test alert on a channel; undefined where nothing is to be sent. */
  readonly sendTest?: ((channel: string) => Promise<SendOutcome>) | undefined
  /** DKIM selectors of the sender's domain; the usual ones are tried when empty. */
  readonly dkimSelectors: readonly string[]
}

const KEY = 'MAILER_API_KEY'

/** The mail transport: name, an answer, certificate (over SMTP after STARTTLS) and the key. Nothing is sent. */
export function mailSteps(dependencies: LiveDependencies, route: MailRoute): Step[] {
  if (route.kind === 'api')
    return [
      ...keyedEndpoint(dependencies, route.url, 'MAILER_API_URL'),
      authorisation(dependencies, KEY, 'is accepted'),
    ]
  const variable = 'MAILER_SMTP_URL'
  const url = route.url.reveal()
  return [
    ...connectionSteps(dependencies, url, variable),
    new URL(url).username === ''
      ? authorisation(dependencies, variable, 'asks for no user')
      : authorisation(dependencies, KEY, 'is accepted'),
  ]
}

/** Reasons of a transport are our own sentences: `… refused the key` and `… refused the credentials`. */
function authorisation({ verifyMail }: LiveDependencies, variable: string, detail: string): Step {
  return step('authorisation', variable, (signal) =>
    verifyMail(signal).then(
      () => passed(detail),
      (error: unknown) =>
        error instanceof Error && /refused the (?:key|credentials)/.test(error.message)
          ? failed('live-unauthorised', 'is refused')
          : failed('live-unreachable', 'cannot be tried: the mail conversation breaks'),
    ),
  )
}
