import type { Settings } from '../env/settings.ts'
import { postgresServers } from '../env/values.ts'
import { PATHS } from '../paths.ts'
import type { Secret } from '../secret.ts'
import { counted } from '../sentences.ts'
import { type Service, type ServiceDefinition, WEB } from '../service.ts'
import { storeFault, storeFaultReason } from '../store-fault.ts'
import {
  certificateStep,
  connectionSteps,
  endpointSteps,
  keyedEndpoint,
  keyStep,
  type LiveDependencies,
  mailSteps,
  nameStep,
  plainHttpIn,
  plainHttpStep,
  step,
} from './endpoint.ts'
import {
  failed,
  NetworkFault,
  outcomeOfFault,
  passed,
  type Step,
  skipped,
  type Target,
  warning,
} from './live.ts'
import type { LiveNetwork } from './network.ts'
import { senderSteps } from './sender.ts'

/** Checks that the store's server can be found, and that the schema is this build's. */
function storeSteps(
  dependencies: LiveDependencies,
  storeSchema: NonNullable<LiveDependencies['storeSchema']>,
): Step[] {
  const { name, settings } = dependencies
  const { address } = settings.store
  const servers = address?.kind === 'postgres' ? postgresServers(address.url.reveal()) : undefined
  return [
    ...(servers ?? []).map((server) => nameStep(dependencies, new URL(server), 'STORE_URL')),
    migrationsStep(address !== undefined, async () => {
      const state = await storeSchema().catch(faultOf)
      if (typeof state === 'string') return failed('live-store', state)
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

/** Without an address the store lies in the data folder, and no variable names it. */
const migrationsStep = (isNamed: boolean, run: Step['run']): Step => ({
  ...step('migrations', 'STORE_URL', run),
  ...(!isNamed && { variables: [] }),
})

/** Why the store cannot be used: sentences about a server hold no value, those about a file name it and are left out. */
function faultOf(error: unknown): string {
  if (!(error instanceof Error && error.name === 'StoreOpenError')) throw error
  const [, ofServer] = /^The PostgreSQL of STORE_URL ([^:.]+)/.exec(error.message) ?? []
  if (ofServer !== undefined) return ofServer.trim()
  return storeFault(error) === 'unknown' ? 'cannot be opened' : `cannot be used: ${storeFaultReason(error)}`
}

const SITE = 'NEXT_PUBLIC_SITE_URL'

/**
 * The site's own name and certificate as visitors meet them, and the webhook as the mail provider does. Before the first
 * deployment nothing answers there: a warning.
 */
function siteSteps(dependencies: LiveDependencies): Step[] {
  const { settings } = dependencies
  const site = new URL(settings.site.siteUrl)
  const { provider } = settings.feedback ?? {}
  return [
    nameStep(dependencies, site, SITE),
    site.protocol === 'https:'
      ? perhapsSilent(certificateStep(dependencies, site, SITE))
      : plainHttpStep(SITE, plainHttpIn(settings)),
    ...(provider ? [perhapsSilent(webhookStep(dependencies, provider))] : []),
  ]
}

const perhapsSilent = ({ run, ...asked }: Step): Step => ({
  ...asked,
  run: (signal) =>
    run(signal).catch((error: unknown) => {
      const outcome = outcomeOfFault(error)
      return error instanceof NetworkFault && 'id' in outcome && outcome.id === 'live-unreachable'
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
  const { contract, services, settings, network, isSet, storeSchema, sendTest } = dependencies
  const { datastore, payments, sharedStore, mail, alerts, heartbeatPing } = settings
  const readersOf = (names: readonly string[]) =>
    contract.services.filter((service) =>
      names.some((name) => contract.find(name)?.services.includes(service)),
    )
  /** Of an integration: half-configured, not configured, or the steps to check it. */
  const target = (
    name: string,
    readers: readonly Service[],
    variable: string,
    steps: readonly Step[] | undefined,
    group = name,
  ): Target => {
    const why =
      settings.groups.get(group) === 'half-configured' ? 'half-configured, so it is off' : 'not configured'
    return { name, services: readers, variables: [variable], order: 'chain', steps: steps ?? why }
  }
  const limits = sharedStore && [
    ...keyedEndpoint(dependencies, sharedStore.url, 'SHAREDSTORE_REST_URL'),
    keyStep({
      network,
      check: 'authorisation',
      variable: 'SHAREDSTORE_REST_TOKEN',
      url: `${sharedStore.url}/ping`,
      headers: bearer(sharedStore.token),
    }),
  ]
  const isBySmtp = mail?.route.kind === 'smtp'
  const sender = mail && {
    address: mail.from.address,
    ...(isBySmtp && { bounceAddress: mail.bounceAddress, dkim: mail.dkim }),
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
    return [target(name, readersOf(address), variable ?? address[0] ?? '', steps || undefined)]
  })
  /** A channel for alerts: what must be known before an incident is that it takes a message. */
  const alertTarget = (name: string, variable: string, channel: string, isOn: boolean, url?: Secret) => {
    const message = step('test message', variable, async () => {
      if (sendTest === undefined) return skipped('none is sent without --send-test')
      const outcome = await sendTest(channel)
      return outcome.kind === 'sent'
        ? passed('took it')
        : failed('live-unhealthy', `did not take the test message: ${outcome.reason}`)
    })
    const reached = url ? connectionSteps(dependencies, url.reveal(), variable) : []
    return target(name, readersOf([variable]), variable, isOn ? [...reached, message] : undefined, 'alerts')
  }
  const targets: readonly Target[] = [
    target(
      'datastore',
      [WEB],
      'NEXT_PUBLIC_DATASTORE_URL',
      datastore && datastoreSteps(dependencies, datastore),
    ),
    target('payments', [WEB], 'PAYMENTS_API_URL', payments && paymentsSteps(dependencies, payments)),
    target('sharedstore', readersOf(['SHAREDSTORE_REST_URL']), 'SHAREDSTORE_REST_URL', limits),
    target('mail', [WEB], 'MAILER_SMTP_URL', mail && mailSteps(dependencies, mail.route)),
    {
      ...target('sender', [WEB], 'MAILER_FROM', sender && senderSteps(dependencies, sender), 'mail'),
      order: 'fan',
    },
    ...neighbours,
    target(
      'store',
      readersOf(['STORE_URL']),
      'STORE_URL',
      storeSchema && storeSteps(dependencies, storeSchema),
    ),
    target('site', [WEB], SITE, isSet(SITE) ? siteSteps(dependencies) : undefined),
    alertTarget('alerts', 'ALERT_WEBHOOK_URL', 'webhook', alerts.webhook !== undefined, alerts.webhook?.url),
    alertTarget('alert-mail', 'ALERT_EMAIL_TO', 'mail', alerts.mailTo !== undefined && mail !== undefined),
    alertTarget(
      'escalation',
      'ALERT_ESCALATION_URL',
      'escalation',
      alerts.escalation !== undefined,
      alerts.escalation?.url,
    ),
    target(
      'heartbeat',
      readersOf(['HEARTBEAT_PING_URL']),
      'HEARTBEAT_PING_URL',
      heartbeatPing && connectionSteps(dependencies, heartbeatPing.reveal(), 'HEARTBEAT_PING_URL'),
    ),
  ]
  return targets
    .map((one) => ({ ...one, services: one.services.filter((service) => asked.includes(service)) }))
    .filter((one) => one.services.length > 0)
}

function datastoreSteps(dependencies: LiveDependencies, store: NonNullable<Settings['datastore']>): Step[] {
  const { network } = dependencies
  const withKey = (check: 'authorisation' | 'service role', variable: string, key: Secret) =>
    keyStep({
      network,
      check,
      variable,
      url: `${store.url}/auth/v1/settings`,
      headers: { apikey: key.reveal(), ...bearer(key) },
    })
  const { serviceRoleKey, tokens } = store
  return [
    ...keyedEndpoint(dependencies, store.url, 'NEXT_PUBLIC_DATASTORE_URL'),
    withKey('authorisation', 'NEXT_PUBLIC_DATASTORE_ANON_KEY', store.anonKey),
    ...(serviceRoleKey ? [withKey('service role', 'DATASTORE_SERVICE_ROLE_KEY', serviceRoleKey)] : []),
    ...(tokens?.kind === 'jwks' ? [publishedKeysStep(network, tokens.url)] : []),
  ]
}

function paymentsSteps(dependencies: LiveDependencies, payments: NonNullable<Settings['payments']>): Step[] {
  const [price = ''] = Object.values(payments.prices)
  const address = dependencies.isSet('PAYMENTS_API_URL') ? 'PAYMENTS_API_URL' : 'PAYMENTS_SECRET_KEY'
  return [
    ...keyedEndpoint(dependencies, payments.apiUrl, address),
    keyStep({
      network: dependencies.network,
      check: 'authorisation',
      variable: 'PAYMENTS_SECRET_KEY',
      url: `${payments.apiUrl}/v1/prices/${encodeURIComponent(price)}`,
      headers: bearer(payments.secretKey),
      // The key was accepted, and only the price was not found. `platformctl billing smoke` looks at prices.
      accepts: 404,
    }),
  ]
}

function publishedKeysStep(network: LiveNetwork, url: string): Step {
  return step('published keys', 'DATASTORE_JWKS_URL', async (signal) => {
    const { status, body } = await network.get({ url, wantsBody: true }, signal)
    const count = keysIn(body)
    return status === 200 && count > 0
      ? passed(counted(count, 'key'))
      : failed('live-unhealthy', `gives no key set (${status})`)
  })
}

/** How many keys a key set has (RFC 7517 §5). */
function keysIn(body: string): number {
  try {
    const { keys } = JSON.parse(body) as { keys?: unknown }
    return Array.isArray(keys) ? keys.length : 0
  } catch {
    return 0
  }
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

function bearer(key: Secret): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${key.reveal()}` }
}
