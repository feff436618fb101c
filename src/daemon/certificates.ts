import { DAY_MS, HOUR_MS, MINUTE_MS } from '../core/durations.ts'
import type { Settings } from '../core/env/settings.ts'
import { codeOf } from '../core/errors.ts'
import { CERTIFICATE_DAYS } from '../core/health/verdict.ts'
import type { Host } from '../core/host.ts'
import type { CertificateCheck } from '../core/incidents/conditions.ts'
import { NO_STARTTLS } from '../core/live/live.ts'
import { type LiveNetwork, openNetwork } from '../core/live/network.ts'
import { portOf } from '../core/network/connect.ts'
import type { ServiceDefinition } from '../core/service.ts'
import type { Metrics } from './metrics/metrics.ts'

const AGAIN_MS = MINUTE_MS
const LIMIT_MS = 10_000

/** Looks at the certificates of the services, stores and providers in `placesOf`, at the start and once an hour. */
export function watchCertificates(
  { clock, log }: Pick<Host, 'clock' | 'log'>,
  settings: Settings,
  services: readonly ServiceDefinition[],
  metrics: Pick<Metrics, 'certificate'>,
  network: LiveNetwork = openNetwork(),
) {
  const stopping = new AbortController()
  const said = new Map<string, string>()
  const seen = new Map<string, CertificateCheck>()
  const places = placesOf(settings, services)
  /** Whose certificate nobody has read in the hour since the start: it may be the bad one of an alert that is open. */
  const unread = new Set(places.map(({ variable }) => variable))

  async function look({ variable, url }: ReturnType<typeof placesOf>[number]): Promise<void> {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(LIMIT_MS)])
    const found = await network.certificate(url, signal).catch((error: unknown) => {
      if (codeOf(error) === NO_STARTTLS) unread.delete(variable)
      return undefined
    })
    if (stopping.signal.aborted) return
    if (found !== undefined) {
      seen.set(variable, { variable, ...found })
      unread.delete(variable)
    }
    metrics.certificate(variable, found && { validTo: found.validTo, valid: found.fault === undefined })
    const { validFrom = 0, validTo = Number.POSITIVE_INFINITY, fault } = found ?? {}
    const days = Math.floor((validTo - clock.now()) / DAY_MS)
    const isSoon = validTo - clock.now() < Math.min(CERTIFICATE_DAYS * DAY_MS, (validTo - validFrom) / 3)
    const state = fault !== undefined ? 'refused' : isSoon ? 'expiring' : 'good'
    // Log each change once, not every hour.
    const isNew = said.get(variable) !== state
    said.set(variable, state)
    if (isNew && state === 'expiring')
      log.warn('certificate_expiring', 'a certificate was not renewed, and ends soon', { variable, days })
    if (isNew && fault !== undefined)
      log.error('certificate_refused', 'programs refuse a certificate', { variable, fault })
  }

  async function run(): Promise<void> {
    for (let again = 0; !stopping.signal.aborted && places.length > 0; again += 1) {
      await Promise.all(places.map(look))
      // Behind a proxy, some are never reached: another alert must end all the same.
      if (again >= HOUR_MS / AGAIN_MS) unread.clear()
      const isBad = unread.size > 0 || [...said.values()].some((state) => state !== 'good')
      await clock.sleep(isBad ? AGAIN_MS : HOUR_MS, stopping.signal).catch(() => {})
    }
  }
  const running = run()
  return {
    found: () => [...seen.values()],
    areRead: () => unread.size === 0,
    async stop(): Promise<void> {
      stopping.abort(new Error('the daemon stops'))
      await running
    },
  }
}

const ENCRYPTED = ['https:', 'smtps:', 'smtp:']

/** Each host and port once, under the first variable that leads there. */
function placesOf(settings: Settings, services: readonly ServiceDefinition[]) {
  const { addresses: known, datastore, payments, sharedStore, mail } = settings
  const addresses: readonly (readonly [variable: string, url: string | undefined])[] = [
    ...services.flatMap(({ name, address: [variable] = [] }) =>
      variable === undefined ? [] : [[variable, known.get(name)] as const],
    ),
    ['NEXT_PUBLIC_DATASTORE_URL', datastore?.url],
    ['PAYMENTS_API_URL', payments?.apiUrl],
    ['SHAREDSTORE_REST_URL', sharedStore?.url],
    ['MAILER_API_URL', mail?.route.kind === 'api' ? mail.route.url : undefined],
    ['MAILER_SMTP_URL', mail?.route.kind === 'smtp' ? mail.route.url.reveal() : undefined],
  ]
  const places = addresses.flatMap(([variable, text]) => {
    const url = new URL(text ?? 'none:')
    return ENCRYPTED.includes(url.protocol) ? [{ variable, url }] : []
  })
  return [...Map.groupBy(places, ({ url }) => `${url.hostname}:${portOf(url)}`).values()].flatMap(
    ([first]) => first ?? [],
  )
}
