import type { Settings } from '../env/settings.ts'
import { postgresServers } from '../env/values.ts'
import type { Secret } from '../secret.ts'
import { type Service, type ServiceDefinition, WEB } from '../service.ts'
import {
  certificateStep,
  endpointSteps,
  keyedEndpoint,
  keyStep,
  type LiveDependencies,
  mailSteps,
  nameStep,
  type PlainHttp,
  plainHttpIn,
  plainHttpStep,
} from './endpoint.ts'
import { NetworkFault, outcomeOfFault, type Step, type StepOutcome, type Target } from './live.ts'
import type { LiveNetwork } from './network.ts'
import { senderSteps } from './sender.ts'

/** Checks that the store's server can be found, and that the schema is this build's. */
function storeSteps(dependencies: LiveDependencies): Step[] {
  const { settings, storeSchema } = dependencies
  const { address } = settings.store
  return [
    ...(address?.kind === 'postgres'
      ? (postgresServers(address.url.reveal()) ?? []).map((server) =>
          nameStep(dependencies, new URL(server).hostname, 'STORE_URL'),
        )
      : []),
    {
      check: 'migrations',
      variables: ['STORE_URL'],
      run: async (): Promise<StepOutcome> => {
        const state = await storeSchema().catch(faultOf)
        if (typeof state === 'string') return { state: 'failed', id: 'live-store', detail: state }
        if (state === undefined)
          return { state: 'skipped', detail: 'there is no store yet; it is made at the first start' }
        const { version, latest, isJournalForeign } = state
        if (isJournalForeign)
          return {
            state: 'failed',
            id: 'live-store',
            detail:
              'has a journal that belongs to another user, so a restore would forget who unsubscribes now',
          }
        if (version === latest) return { state: 'passed', detail: `schema ${version}, nothing to migrate` }
        return version < latest
          ? {
              state: 'warning',
              id: 'store-migration-pending',
              detail: `has schema ${version}, and this build brings ${latest}`,
            }
          : {
              state: 'warning',
              id: 'store-schema-newer',
              detail: `has schema ${version}, and this build knows ${latest}`,
            }
      },
    },
  ]
}

/** Why the store cannot be opened: sentences about a server hold no value, those about a file name it and are left out. */
function faultOf(error: unknown): string {
  if (!(error instanceof Error && error.name === 'StoreOpenError')) throw error
  return /^The PostgreSQL of STORE_URL ([^:.]+)/.exec(error.message)?.[1]?.trim() ?? 'cannot be opened'
}

const VARIABLE = 'NEXT_PUBLIC_SITE_URL'

/** The site's own name and certificate, as visitors meet them. Before the first deployment nothing answers there: a warning. */
function siteSteps(dependencies: LiveDependencies, plainHttp: PlainHttp): Step[] {
  const { hostname, port, protocol } = new URL(dependencies.settings.site.siteUrl)
  const name = nameStep(dependencies, hostname, VARIABLE)
  if (protocol !== 'https:') return [name, plainHttpStep(VARIABLE, plainHttp)]
  const where = { host: hostname, port: Number(port) || 443, startTls: false }
  const certificate = certificateStep(dependencies, where, VARIABLE)
  return [
    name,
    {
      ...certificate,
      run: (signal) =>
        certificate.run(signal).catch((error: unknown) => {
          const verdict = outcomeOfFault(error)
          const silent =
            error instanceof NetworkFault && ['refused', 'no route', 'timeout', 'broken'].includes(error.kind)
          return silent && 'id' in verdict
            ? { ...verdict, state: 'warning', detail: verdict.detail.replace('reached', 'read') }
            : verdict
        }),
    },
  ]
}

/** Everything that the configuration reaches out to, for the services asked for. */
export function liveTargets(dependencies: LiveDependencies, asked: readonly Service[]): readonly Target[] {
  const { contract, services, settings, network, isSet } = dependencies
  const { datastore, payments, sharedStore, mail, store } = settings
  const readersOf = (names: readonly string[]) =>
    contract.services.filter((service) =>
      names.some((name) => contract.find(name)?.services.includes(service)),
    )
  const targets: readonly Target[] = [
    target('datastore', [WEB], 'NEXT_PUBLIC_DATASTORE_URL', absent(settings, 'datastore', datastore), () =>
      datastore === undefined ? [] : datastoreSteps(dependencies, datastore),
    ),
    target('payments', [WEB], 'PAYMENTS_API_URL', absent(settings, 'payments', payments), () =>
      payments === undefined ? [] : paymentsSteps(dependencies, payments),
    ),
    target(
      'sharedstore',
      readersOf(['SHAREDSTORE_REST_URL']),
      'SHAREDSTORE_REST_URL',
      absent(settings, 'sharedstore', sharedStore),
      () =>
        sharedStore === undefined
          ? []
          : [
              ...keyedEndpoint(dependencies, sharedStore.url, 'SHAREDSTORE_REST_URL'),
              keyStep({
                network,
                check: 'authorisation',
                variable: 'SHAREDSTORE_REST_TOKEN',
                url: `${sharedStore.url}/ping`,
                headers: bearer(sharedStore.token),
              }),
            ],
    ),
    target('mail', [WEB], 'MAILER_SMTP_URL', absent(settings, 'mail', mail), () =>
      mail === undefined ? [] : mailSteps(dependencies, mail.route),
    ),
    {
      ...target('sender', [WEB], 'MAILER_FROM', absent(settings, 'mail', mail), () =>
        mail === undefined
          ? []
          : senderSteps(dependencies, {
              address: mail.from.address,
              bounceAddress: mail.route.kind === 'smtp' ? mail.bounceAddress : undefined,
              dkim: mail.route.kind === 'smtp' ? mail.dkim : undefined,
            }),
      ),
      order: 'fan',
    },
    ...services.flatMap((service) =>
      service.name === WEB || service.address === undefined ? [] : [neighbour(service, service.address)],
    ),
    target(
      'store',
      readersOf(['STORE_URL']),
      'STORE_URL',
      store.address === undefined ? 'not configured' : undefined,
      () => storeSteps(dependencies),
    ),
    target(
      'site',
      [WEB],
      'NEXT_PUBLIC_SITE_URL',
      isSet('NEXT_PUBLIC_SITE_URL') ? undefined : 'not configured',
      () => siteSteps(dependencies, plainHttpIn(settings)),
    ),
  ]
  return targets
    .map((one) => ({ ...one, services: one.services.filter((service) => asked.includes(service)) }))
    .filter((one) => one.services.length > 0)

  function neighbour(service: ServiceDefinition, variables: readonly string[]): Target {
    const { name } = service
    const variable = variables.find(isSet)
    const url = settings.addresses.get(name) ?? ''
    return target(
      name,
      readersOf(variables),
      variable ?? variables[0] ?? '',
      variable ? undefined : 'not configured',
      () => [
        ...endpointSteps(
          dependencies,
          url,
          variable ?? '',
          variable?.startsWith('NEXT_PUBLIC_') ? plainHttpIn(settings) : 'allowed',
        ),
        healthStep(network, service, url, variable ?? ''),
      ],
    )
  }
}

function target(
  name: string,
  services: readonly Service[],
  variable: string,
  why: string | undefined,
  steps: () => readonly Step[],
): Target {
  return { name, services, variables: [variable], order: 'chain', steps: why ?? steps() }
}

function absent(settings: Settings, group: string, configured: unknown): string | undefined {
  if (settings.groups.get(group) === 'half-configured') return 'half-configured, so it is off'
  return configured === undefined ? 'not configured' : undefined
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
  return [
    ...keyedEndpoint(dependencies, store.url, 'NEXT_PUBLIC_DATASTORE_URL'),
    withKey('authorisation', 'NEXT_PUBLIC_DATASTORE_ANON_KEY', store.anonKey),
    ...(store.serviceRoleKey
      ? [withKey('service role', 'DATASTORE_SERVICE_ROLE_KEY', store.serviceRoleKey)]
      : []),
    ...(store.tokens?.kind === 'jwks' ? [publishedKeysStep(network, store.tokens.url)] : []),
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
      // With 404 the key was accepted, and only the price was not found. `platformctl billing smoke` looks at
      // prices.
      accepts: (status) => status === 404,
    }),
  ]
}

function publishedKeysStep(network: LiveNetwork, url: string): Step {
  return {
    check: 'published keys',
    variables: ['DATASTORE_JWKS_URL'],
    run: async (signal) => {
      const { status, body } = await network.get({ url, wantsBody: true }, signal)
      const count = keysIn(body)
      return status === 200 && count > 0
        ? { state: 'passed', detail: `${count} key${count === 1 ? '' : 's'}` }
        : { state: 'failed', id: 'live-unhealthy', detail: `gives no key set (${status})` }
    },
  }
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
  return {
    check: 'health',
    variables: [variable],
    run: async (signal): Promise<StepOutcome> => {
      const health = await network.health(service, url, signal)
      if (!health.reached)
        return { state: 'failed', id: 'live-unhealthy', detail: `gives no health: ${health.reason}` }
      const { state } = health.report
      if (state === 'failing') return { state: 'failed', id: 'live-unhealthy', detail: 'is failing' }
      return state === 'degraded'
        ? { state: 'warning', id: 'live-unhealthy', detail: 'is degraded' }
        : { state: 'passed', detail: 'is ok' }
    },
  }
}

function bearer(key: Secret): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${key.reveal()}` }
}
