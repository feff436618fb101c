import type { Settings } from '../env/settings.ts'
import { given } from '../given.ts'
import type { Host } from '../host.ts'
import { jsonObject } from '../is-record.ts'
import { exchange } from '../network/exchange.ts'
import { PATHS } from '../paths.ts'
import { ANSWER_MS, LARGEST_ANSWER_BYTES, sessionForm } from './checkout.ts'
import { SIGNATURE_HEADER, signatureOf } from './webhook.ts'

/** The result of one check; `unreached`: no answer, or the key was refused, so the check says nothing. */
export interface SmokeCheck {
  readonly name: string
  readonly state: 'passed' | 'failed' | 'unreached' | 'skipped'
  /** The finding, as a sentence; unless the check passed, it also says what to do. */
  readonly finding: string
}

interface SmokeInput {
  readonly payments: NonNullable<Settings['payments']>
  /** The address of the running web service; undefined leaves out the webhook. */
  readonly webUrl: string | undefined
  readonly siteUrl: string
  readonly mode: ReturnType<typeof keyModeOf>
  readonly signal: AbortSignal
}

export function keyModeOf({ secretKey }: SmokeInput['payments']): 'test' | 'live' | 'unknown' {
  const key = secretKey.reveal()
  return /^[rs]k_live_/.test(key) ? 'live' : /^[rs]k_test_/.test(key) ? 'test' : 'unknown'
}

class Finding extends Error {
  readonly state: 'failed' | 'unreached' | 'skipped'
  constructor(finding: string, state: Finding['state'] = 'failed') {
    super(finding)
    this.state = state
  }
}

/** Tries payments end to end without moving money: keys, prices, a checkout that is expired at once, a webhook. */
export async function* smoke(
  host: Pick<Host, 'clock' | 'random'>,
  input: SmokeInput,
): AsyncGenerator<SmokeCheck> {
  const currencies = new Map<string, string>()
  const prices = Object.entries(input.payments.prices).map(
    ([plan, id]) => [`price ${plan}`, () => price(input, plan, id, currencies)] as const,
  )
  const checks: readonly (readonly [name: string, check: () => Promise<string>])[] = [
    ['keys', async () => keys(input)],
    ...prices,
    // Not given up once it is begun: a session that was opened would stay open.
    ['checkout', () => checkout({ ...input, signal: new AbortController().signal })],
    ['webhook', () => webhook(host, input)],
  ]
  for (const [name, check] of checks)
    yield await check().then(
      (finding) => ({ name, state: 'passed', finding }),
      (error: unknown) => {
        if (!(error instanceof Finding)) throw error
        return { name, state: error.state, finding: error.message }
      },
    )
}

function keys({ payments: { publishableKey }, mode }: SmokeInput): string {
  if (mode === 'unknown')
    throw new Finding(
      'PAYMENTS_SECRET_KEY has neither the prefix of a test key nor of a live one: it may be another key.',
    )
  const other = mode === 'test' ? 'live' : 'test'
  if (publishableKey?.startsWith(`pk_${other}_`))
    throw new Finding(
      `the secret key is for ${mode} mode and NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY for ${other} mode: use two of one mode.`,
    )
  return `${mode} mode`
}

/** GET /v1/prices/ID: exists, active, recurring in the interval that the plan's name gives, all in one currency, in the key's mode. */
async function price(input: SmokeInput, plan: string, id: string, currencies: Map<string, string>) {
  const { mode } = input
  const variable = `PAYMENTS_PRICE_${plan.toUpperCase().replaceAll('-', '_')}`
  const { status, body } = await askApi(input, 'GET', `/v1/prices/${encodeURIComponent(id)}`)
  if (status === 404)
    throw new Finding(`no such price in ${mode} mode: set ${variable} to an id of this account and mode.`)
  if (status !== 200) throw unexpected(status)
  const { active, type, recurring, currency, livemode, unit_amount: amount } = body
  const { interval, interval_count: each = 1 } = Object(recurring) as Record<string, unknown>
  const named = each === 1 ? String(interval) : `${String(each)} ${String(interval)}s`
  const wanted = ['week', 'month', 'year'].find((one) => plan.endsWith(`${one}ly`)) ?? named
  if (active !== true) throw new Finding(`the price is archived: activate it, or set ${variable} to another.`)
  if (type !== 'recurring')
    throw new Finding(`the price is paid once: a subscription needs a recurring one in ${variable}.`)
  if (named !== wanted)
    throw new Finding(
      `the price is paid by the ${named}, and this plan by the ${wanted}: set ${variable} to another.`,
    )
  if (mode !== 'unknown' && livemode !== (mode === 'live'))
    throw new Finding(`the price is of ${livemode ? 'live' : 'test'} mode, and the key of ${mode} mode.`)
  const [first, other] = [...currencies].find(([, one]) => one !== currency) ?? []
  currencies.set(plan, String(currency))
  if (first !== undefined)
    throw new Finding(`the price is in ${String(currency)}, that of ${first} in ${other}: use one currency.`)
  return `active, ${amountText(amount, currency)} ${each === 1 ? 'a' : 'every'} ${named}`
}

/** `€19.00`: amounts come in the currency's smallest unit, of which some currencies have no fraction. */
function amountText(amount: unknown, currency: unknown): string {
  if (typeof amount !== 'number' || typeof currency !== 'string' || !/^[a-z]{3}$/.test(currency))
    return String(currency)
  const format = new Intl.NumberFormat('en', { style: 'currency', currency })
  return format.format(amount / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2))
}

/** POST /v1/checkout/sessions as the platform does, then POST …/expire: nobody can pay it. */
async function checkout(input: SmokeInput): Promise<string> {
  const [id = ''] = Object.values(input.payments.prices)
  const form = sessionForm(id, input.siteUrl, { client_reference_id: 'platformctl-billing-smoke' })
  const { status, body } = await askApi(input, 'POST', '/v1/checkout/sessions', form)
  if (status !== 200 || typeof body.id !== 'string' || typeof body.url !== 'string') throw unexpected(status)
  const expire = `/v1/checkout/sessions/${encodeURIComponent(body.id)}/expire`
  const expired = await askApi(input, 'POST', expire, '')
  if (expired.status !== 200 || expired.body.status !== 'expired')
    throw new Finding(
      `a session was opened and could not be expired (${expired.status}): it ends by itself within 24 hours.`,
    )
  return 'a session was opened and expired'
}

/** An event signed with PAYMENTS_WEBHOOK_SECRET, delivered twice, and once with a signature that does not fit. */
async function webhook({ clock, random }: Pick<Host, 'clock' | 'random'>, input: SmokeInput) {
  const { webUrl, payments } = input
  if (webUrl === undefined) throw new Finding('left out', 'skipped')
  const body = JSON.stringify({
    id: `evt_smoke_${Buffer.from(random.bytes(12)).toString('hex')}`,
    object: 'event',
    type: 'platformctl.smoke',
    created: Math.floor(clock.now() / 1000),
    data: { object: {} },
  })
  const header = signatureOf(body, payments.webhookSecret.current, clock.now())
  const url = `${webUrl}${PATHS.paymentsWebhook}`
  const silence = `${new URL(url).origin} gave no answer: check the address, and that it is reached from here.`
  const deliver = (signature: string) => {
    const headers = { 'content-type': 'application/json', [SIGNATURE_HEADER]: signature }
    return ask(input, url, { method: 'POST', headers, body }, silence)
  }
  const forged = await deliver(header.replace(/.$/, (last) => (last === '0' ? '1' : '0')))
  if (forged.status === 503)
    throw new Finding('payments are not configured in the service: start it with the same environment.')
  if (forged.status < 400)
    throw new Finding(`the service took an event whose signature does not fit (${forged.status}).`)
  const first = await deliver(header)
  if (first.status === forged.status && first.body.code === forged.body.code)
    throw new Finding(
      'the service refused the signature: it was started with another PAYMENTS_WEBHOOK_SECRET, or its clock is off.',
    )
  if (first.status !== 200 || first.body.received !== true) throw unexpected(first.status)
  const second = await deliver(header)
  if (second.status !== 200 || second.body.duplicate !== true)
    throw new Finding('a repeated event was not recognised as one.')
  return 'a signed event was taken once, its repetition known, a forged one refused'
}

async function askApi(input: SmokeInput, method: 'GET' | 'POST', path: string, form?: string) {
  const { apiUrl, secretKey } = input.payments
  const typed = form !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }
  const headers = { authorization: `Bearer ${secretKey.reveal()}`, ...typed }
  // Names the variable, because a value of the environment is not shown.
  const silence = 'the payments API gave no answer: check PAYMENTS_API_URL, and that it is reached from here.'
  const answer = await ask(input, `${apiUrl}${path}`, { method, headers, ...given({ body: form }) }, silence)
  if (answer.status === 401 || answer.status === 403)
    throw new Finding(
      'the payments API refused PAYMENTS_SECRET_KEY: it was revoked, or may not do this.',
      'unreached',
    )
  return answer
}

async function ask(
  { signal }: SmokeInput,
  url: string,
  request: Parameters<typeof exchange>[1],
  silence: string,
): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }> {
  const answer = await exchange(url, { ...request, signal }, LARGEST_ANSWER_BYTES, ANSWER_MS).catch(() => {
    throw new Finding(silence, 'unreached')
  })
  return { status: answer.status, body: jsonObject(answer.text) }
}

const unexpected = (status: number) =>
  new Finding(
    `the answer was ${status}, and not what the API documents: look into the provider’s log of requests.`,
  )
