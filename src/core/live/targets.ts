import type { Settings, StoreAddress, StoreVariable } from '../env/settings.ts'
import { postgresServers } from '../env/values.ts'
import { codeOf, storeFault, storeFaultReason } from '../errors.ts'
import type { ProbeDefinition } from '../health/probe.ts'
import { jsonObject } from '../is-record.ts'
import { isCauseCode } from '../network/causes.ts'
import { PATHS } from '../paths.ts'
import type { Secret } from '../secret.ts'
import { counted } from '../sentences.ts'
import { type Service, type ServiceDefinition, WEB } from '../service.ts'
import {
  connectionSteps,
  encryptionStep,
  endpointSteps,
  keyedEndpoint,
  keyStep,
  type LiveDependencies,
  mailSteps,
  nameStep,
  plainHttpIn,
  step,
} from './endpoint.ts'
import { failed, outcomeOfFault, passed, type Step, skipped, type Target, warning } from './live.ts'
import type { LiveNetwork } from './network.ts'
import { senderSteps } from './sender.ts'

/** Checks that the server of a store can be found, and that the schema is this build's. */
function storeSteps(
  dependencies: LiveDependencies,
  variable: StoreVariable,
  address: StoreAddress | undefined,
  read: NonNullable<LiveDependencies['storeSchema']>,
) {
  const { name } = dependencies
  const servers = address?.kind === 'postgres' ? postgresServers(address.url.reveal()) : undefined
  return [
    ...(servers ?? []).map((server) => nameStep(dependencies, new URL(server), variable)),
    // Without an address the store lies in the data folder, and no variable names it.
    step('migrations', address && variable, async () => {
      const state = await read().catch(faultOf)
      if (typeof state === 'string') return failed(idOf(state), state)
      if (state === undefined) return skipped('there is no store yet; it is made at the first start')
      const { version, latest, owner = name } = state
      if (owner !== name)
        return failed(
          'store-of-another',
          `belongs to the platform ${JSON.stringify(owner)}, and this is ${JSON.stringify(name)}`,
        )
      if (version === latest) return passed(`schema ${version}, nothing to migrate`)
      return version < latest
        ? warning('store-migration-pending', `has schema ${version}, and this build brings ${latest}`)
        : warning('store-schema-newer', `has schema ${version}, and this build knows ${latest}`)
    }),
  ]
}

/** Why the store cannot be used: sentences about a server hold no value, those about a file name it and are left out. */
function faultOf(error: unknown): string {
  if (!(error instanceof Error && error.name === 'StoreOpenError')) throw error
  const [, ofServer] = /^The PostgreSQL of STORE_URL ([^:.]+)/.exec(error.message) ?? []
  if (ofServer !== undefined) return ofServer.trim()
  return storeFault(error) === 'unknown' ? 'cannot be opened' : `cannot be used: ${storeFaultReason(error)}`
}

/** A server that is not reached, or refuses the credentials, is the other side's fault, as for any other address. */
function idOf(fault: string) {
  if (/^(?:refused the con|broke|did not answer|has a host|has no con)/.test(fault)) return 'live-unreachable'
  return fault.startsWith('refused the user') ? 'live-unauthorised' : 'live-store'
}

const SITE = 'NEXT_PUBLIC_SITE_URL'

/** The site's name and certificate, and the mail provider's webhook. Nothing answers before the first deployment. */
function siteSteps(dependencies: LiveDependencies): Step[] {
  const { settings } = dependencies
  const site = new URL(settings.site.siteUrl)
  const { provider } = settings.feedback ?? {}
  return [
    nameStep(dependencies, site, SITE),
    perhapsSilent(encryptionStep(dependencies, site, SITE, plainHttpIn(settings))),
    ...(provider ? [perhapsSilent(webhookStep(dependencies, provider))] : []),
  ]
}

const perhapsSilent = ({ run, ...asked }: Step): Step => ({
  ...asked,
  run: (signal) =>
    run(signal).catch((error: unknown) => {
      const outcome = outcomeOfFault(error)
      return isCauseCode(codeOf(error)) && 'id' in outcome && outcome.id === 'live-unreachable'
        ? warning(outcome.id, outcome.detail.replace('reached', 'read'))
        : outcome
    }),
})

/** Whether what the mail provider calls is our webhook, which refuses a GET as no other program does. */
function webhookStep({ network, settings }: LiveDependencies, provider: string): Step {
  const { origin } = new URL(settings.site.siteUrl)
  const path = PATHS.feedback.replace(':provider', provider)
  return step('webhook', SITE, async (signal) => {
    // Nothing secret is sent: what is wrong with a certificate is said by its own step.
    const asked = { url: origin + path, wantsBody: true, anyCertificate: true }
    const { status, body } = await network.get(asked, signal)
    return status === 405 && body.includes('"method_not_allowed"')
      ? passed('is ours')
      : failed('live-unhealthy', `does not lead to this platform: ${path} answers with ${status}`)
  })
}

/** Everything that the configuration reaches out to, for the services asked for. */
export function liveTargets(dependencies: LiveDependencies, asked: readonly Service[]): readonly Target[] {
  const { contract, services, probes, settings, network, isSet, storeSchema, jobSchema, sendTest } =
    dependencies
  const { datastore, payments, sharedStore, store, mail, errortrack, alerts, heartbeatPing } = settings
  const readersOf = (names: readonly string[]) =>
    contract.services.filter((service) =>
      names.some((name) => contract.find(name)?.services.includes(service)),
    )
  /** Of an integration: half-configured, not configured, or the steps to check it. */
  const target = (
    name: string,
    variable: string,
    steps: readonly Step[] | undefined,
    readers: readonly Service[] = readersOf([variable]),
    group = name,
  ): Target => {
    const why =
      settings.groups.get(group) === 'half-configured' ? 'half-configured, so it is off' : 'not configured'
    const variables = variable === '' ? [] : [variable]
    return { name, services: readers, variables, order: 'chain', steps: steps ?? why }
  }
  const neighbours = services.flatMap((service) => {
    const { name, address } = service
    if (name === WEB || address === undefined) return []
    const variable = address.find(isSet)
    const url = settings.addresses.get(name) ?? ''
    const plainHttp = variable?.startsWith('NEXT_PUBLIC_') ? plainHttpIn(settings) : 'allowed'
    const steps = variable && [
      ...endpointSteps(dependencies, url, variable, plainHttp),
      healthStep(network, service, url, variable),
    ]
    return [target(name, variable ?? address[0] ?? '', steps || undefined, readersOf(address))]
  })
  const own = probes.flatMap((probe) => {
    const { name, service, variable } = probe
    if (variable === undefined) return []
    const isKnown = variable === '' || isSet(variable)
    const steps = isKnown ? [probeStep(dependencies, probe, variable)] : undefined
    return [target(name, variable, steps, [service])]
  })
  /** A channel for alerts: what must be known before an incident is that it takes a message. */
  const alertTarget = (name: string, variable: string, channel: string, on?: { readonly url?: Secret }) => {
    const message = step('test message', variable, async () => {
      if (sendTest === undefined) return skipped('none is sent without --send-test')
      const outcome = await sendTest(channel)
      return outcome.kind === 'sent'
        ? passed('took it')
        : failed('live-unhealthy', `did not take the test message: ${outcome.reason}`)
    })
    const reached = on?.url ? connectionSteps(dependencies, on.url.reveal(), variable) : []
    return target(name, variable, on && [...reached, message], undefined, 'alerts')
  }
  type Read = LiveDependencies['storeSchema']
  const storeTarget = (name: string, variable: StoreVariable, at: StoreAddress | undefined, read: Read) => {
    const steps = read && storeSteps(dependencies, variable, at, read)
    return target(name, variable, steps, undefined, 'store')
  }
  const { webhook, escalation, mailTo } = alerts
  const targets: readonly Target[] = [
    target('datastore', DATASTORE, datastore && datastoreSteps(dependencies, datastore)),
    target('payments', 'PAYMENTS_API_URL', payments && paymentsSteps(dependencies, payments)),
    target('sharedstore', LIMITS, sharedStore && sharedStoreSteps(dependencies, sharedStore)),
    target('mail', 'MAILER_SMTP_URL', mail && mailSteps(dependencies, mail.route), [WEB]),
    {
      ...target('sender', 'MAILER_FROM', mail && senderSteps(dependencies, mail), [WEB], 'mail'),
      order: 'fan',
    },
    ...neighbours,
    ...own,
    storeTarget('store', 'STORE_URL', store.address, storeSchema),
    storeTarget('jobstore', 'JOB_STORE_URL', store.jobStore, jobSchema),
    target('errortrack', DSN, errortrack && keyedEndpoint(dependencies, new URL(errortrack.dsn).origin, DSN)),
    target('site', SITE, isSet(SITE) ? siteSteps(dependencies) : undefined, [WEB]),
    alertTarget('alerts', 'ALERT_WEBHOOK_URL', 'webhook', webhook),
    alertTarget('alert-mail', 'ALERT_EMAIL_TO', 'mail', mailTo && mail && {}),
    alertTarget('escalation', 'ALERT_ESCALATION_URL', 'escalation', escalation),
    target('heartbeat', PING, heartbeatPing && connectionSteps(dependencies, heartbeatPing.reveal(), PING)),
  ]
  return targets
    .map((one) => ({ ...one, services: one.services.filter((service) => asked.includes(service)) }))
    .filter((one) => one.services.length > 0)
}

const DATASTORE = 'NEXT_PUBLIC_DATASTORE_URL'
const LIMITS = 'SHAREDSTORE_REST_URL'
const PING = 'HEARTBEAT_PING_URL'
const DSN = 'NEXT_PUBLIC_ERRORTRACK_DSN'

function sharedStoreSteps(dependencies: LiveDependencies, store: NonNullable<Settings['sharedStore']>) {
  const { url, token } = store
  const asked = ['authorisation', 'SHAREDSTORE_REST_TOKEN', `${url}/ping`, bearer(token)] as const
  return [...keyedEndpoint(dependencies, url, LIMITS), keyStep(dependencies.network, ...asked)]
}

function datastoreSteps(dependencies: LiveDependencies, store: NonNullable<Settings['datastore']>): Step[] {
  const { network } = dependencies
  const { url, anonKey, serviceRoleKey, tokens } = store
  const withKey = (check: 'authorisation' | 'service role', variable: string, key: Secret) =>
    keyStep(network, check, variable, `${url}/auth/v1/settings`, { apikey: key.reveal(), ...bearer(key) })
  return [
    ...keyedEndpoint(dependencies, url, DATASTORE),
    withKey('authorisation', 'NEXT_PUBLIC_DATASTORE_ANON_KEY', anonKey),
    ...(serviceRoleKey ? [withKey('service role', 'DATASTORE_SERVICE_ROLE_KEY', serviceRoleKey)] : []),
    ...(tokens?.kind === 'jwks' ? [publishedKeysStep(network, tokens.url)] : []),
  ]
}

function paymentsSteps(dependencies: LiveDependencies, payments: NonNullable<Settings['payments']>): Step[] {
  const { prices, apiUrl, secretKey } = payments
  const [price = ''] = Object.values(prices)
  const variable = 'PAYMENTS_SECRET_KEY'
  const url = `${apiUrl}/v1/prices/${encodeURIComponent(price)}`
  const at = dependencies.isSet('PAYMENTS_API_URL') ? 'PAYMENTS_API_URL' : variable
  return [
    ...keyedEndpoint(dependencies, apiUrl, at),
    // 404: the key was accepted, and only the price was not found. `platformctl billing smoke` looks at prices.
    keyStep(dependencies.network, 'authorisation', variable, url, bearer(secretKey), 404),
  ]
}

function publishedKeysStep(network: LiveNetwork, url: string): Step {
  return step('published keys', 'DATASTORE_JWKS_URL', async (signal) => {
    const { status, body } = await network.get({ url, wantsBody: true }, signal)
    const { keys } = jsonObject(body)
    return status === 200 && Array.isArray(keys) && keys.length > 0
      ? passed(counted(keys.length, 'key'))
      : failed('live-unhealthy', `gives no key set (${status})`)
  })
}

function healthStep(network: LiveNetwork, service: ServiceDefinition, url: string, variable: string): Step {
  return step('health', variable, async (signal) => {
    const health = await network.health(service, url, signal)
    if (!health.reached) return failed('live-unhealthy', `gives no health: ${health.reason}`)
    const { state } = health.report
    if (state === 'failing') return failed('live-unhealthy', 'is failing')
    return state === 'degraded' ? warning('live-unhealthy', 'is degraded') : passed('is ok')
  })
}

function probeStep({ network, settings }: LiveDependencies, probe: ProbeDefinition, variable: string): Step {
  return step('reachability', variable || undefined, async (signal) => {
    const asked = network.probe(probe, settings, signal).then(({ state, reason = 'answers' }) => {
      if (state === 'skipped') return skipped(reason)
      return state === 'ok' ? passed(reason) : failed('live-unhealthy', reason)
    })
    const outcome = await asked.catch(outcomeOfFault)
    return probe.optional && outcome.state === 'failed' ? warning(outcome.id, outcome.detail) : outcome
  })
}

const bearer = (key: Secret) => ({ authorization: `Bearer ${key.reveal()}` })
