import { createHmac } from 'node:crypto'
import { request } from 'undici'
import type { Clock } from '../clock.ts'
import type { Settings } from '../env/settings.ts'
import { PATHS } from '../paths.ts'
import type { Random } from '../random.ts'
import type { Secret } from '../secret.ts'

/** The provider's signature of a webhook body: `t=UNIX_SECONDS,v1=HEX`, HMAC-SHA256 over `t.body`. */
export function signatureOf(input: {
  readonly body: string
  readonly secret: Secret
  readonly nowMs: number
}): string {
  const time = Math.floor(input.nowMs / 1000)
  const signature = createHmac('sha256', input.secret.reveal()).update(`${time}.${input.body}`).digest('hex')
  return `t=${time},v1=${signature}`
}

type Payments = NonNullable<Settings['payments']>

/** The result of one check; `unreached`: no answer, or the key was refused, so the check says nothing. */
export interface SmokeCheck {
  readonly name: string
  readonly state: 'passed' | 'failed' | 'unreached' | 'skipped'
  /** The finding, as a sentence; unless the check passed, it also says what to do. */
  readonly finding: string
}

export interface SmokeInput {
  readonly payments: Payments
  /** The address of the running web service; undefined leaves out the webhook. */
  readonly webUrl: string | undefined
  readonly siteUrl: string
  readonly mode: KeyMode
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
}

export type KeyMode = 'test' | 'live' | 'unknown'

const ANSWER_MS = 10_000
const LARGEST_ANSWER_BYTES = 256 * 1024

export function keyModeOf(payments: Payments): KeyMode {
  const key = payments.secretKey.reveal()
  return /^[rs]k_live_/.test(key) ? 'live' : /^[rs]k_test_/.test(key) ? 'test' : 'unknown'
}

/** Tries payments end to end without moving money: keys, prices, a checkout that is expired at once, a webhook. */
export async function* smoke(input: SmokeInput): AsyncGenerator<SmokeCheck> {
  const { payments } = input
  yield keys(payments, input.mode)
  const currencies = new Map<string, string>()
  for (const [plan, id] of Object.entries(payments.prices)) yield await price(input, plan, id, currencies)
  yield await checkout(input)
  yield await webhook(input)
}

function keys({ publishableKey }: Payments, mode: KeyMode): SmokeCheck {
  if (mode === 'unknown')
    return failed(
      'keys',
      'PAYMENTS_SECRET_KEY has neither the prefix of a test key nor of a live one: it may be another key.',
    )
  const other = mode === 'test' ? 'live' : 'test'
  if (publishableKey?.startsWith(`pk_${other}_`))
    return failed(
      'keys',
      `the secret key is for ${mode} mode and NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY for ${other} mode: use two of one mode.`,
    )
  return passed('keys', `${mode} mode`)
}

/** GET /v1/prices/ID: exists, active, recurring in the plan's interval, all in one currency, in the key's mode. */
async function price(
  input: SmokeInput,
  plan: string,
  id: string,
  currencies: Map<string, string>,
): Promise<SmokeCheck> {
  const name = `price ${plan}`
  const variable = `PAYMENTS_PRICE_${plan.toUpperCase().replace('-', '_')}`
  const answer = await ask(input, 'GET', `/v1/prices/${encodeURIComponent(id)}`)
  if (answer.kind !== 'answer') return { name, ...answer.problem }
  if (answer.status === 404)
    return failed(
      name,
      `there is no such price in ${input.mode} mode: set ${variable} to an id of this account and mode.`,
    )
  if (answer.status !== 200) return unexpected(name, answer.status)
  const { active, type, recurring, currency, livemode, unit_amount: amount } = answer.body
  const interval = Object(recurring).interval
  const wanted = plan.endsWith('monthly') ? 'month' : 'year'
  if (active !== true)
    return failed(name, `the price is archived: activate it, or set ${variable} to another.`)
  if (type !== 'recurring')
    return failed(name, `the price is paid once: a subscription needs a recurring one in ${variable}.`)
  if (interval !== wanted)
    return failed(
      name,
      `the price is paid by the ${String(interval)}, and this plan by the ${wanted}: set ${variable} to another.`,
    )
  if (input.mode !== 'unknown' && livemode !== (input.mode === 'live'))
    return failed(
      name,
      `the price is of ${livemode ? 'live' : 'test'} mode, and the key of ${input.mode} mode.`,
    )
  const [first, other] = [...currencies].find(([, one]) => one !== currency) ?? []
  currencies.set(plan, String(currency))
  if (first !== undefined)
    return failed(
      name,
      `the price is in ${String(currency)}, and that of ${first} in ${other}: use one currency.`,
    )
  return passed(name, `active, ${amountText(amount, currency)} a ${wanted}`)
}

/** `€19.00`: amounts come in the currency's smallest unit, of which some currencies have no fraction. */
function amountText(amount: unknown, currency: unknown): string {
  if (typeof amount !== 'number' || typeof currency !== 'string' || !/^[a-z]{3}$/.test(currency))
    return String(currency)
  const format = new Intl.NumberFormat('en', { style: 'currency', currency })
  return format.format(amount / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2))
}

/** POST /v1/checkout/sessions as the platform does, then POST …/expire: nobody can pay it. */
async function checkout(input: SmokeInput): Promise<SmokeCheck> {
  const name = 'checkout'
  const [id] = Object.values(input.payments.prices)
  const opened = await ask(input, 'POST', '/v1/checkout/sessions', {
    mode: 'subscription',
    'line_items[0][price]': id ?? '',
    'line_items[0][quantity]': '1',
    client_reference_id: 'platformctl-billing-smoke',
    success_url: `${input.siteUrl}/?checkout=done`,
    cancel_url: `${input.siteUrl}/?checkout=cancelled`,
  })
  if (opened.kind !== 'answer') return { name, ...opened.problem }
  const session = opened.body.id
  if (opened.status !== 200 || typeof session !== 'string' || typeof opened.body.url !== 'string')
    return unexpected(name, opened.status)
  const expired = await ask(input, 'POST', `/v1/checkout/sessions/${encodeURIComponent(session)}/expire`, {})
  if (expired.kind !== 'answer') return { name, ...expired.problem }
  return expired.status === 200 && expired.body.status === 'expired'
    ? passed(name, 'a session was opened and expired')
    : failed(
        name,
        `a session was opened and could not be expired (${expired.status}): it ends by itself within 24 hours.`,
      )
}

/** An event signed with PAYMENTS_WEBHOOK_SECRET, delivered twice, and once with a signature that does not fit. */
async function webhook(input: SmokeInput): Promise<SmokeCheck> {
  const name = 'webhook'
  const { webUrl, clock } = input
  if (webUrl === undefined) return { name, state: 'skipped', finding: 'left out' }
  const body = JSON.stringify({
    id: `evt_smoke_${Buffer.from(input.random.bytes(12)).toString('hex')}`,
    object: 'event',
    type: 'platformctl.smoke',
    created: Math.floor(clock.now() / 1000),
    data: { object: {} },
  })
  const header = signatureOf({ body, secret: input.payments.webhookSecret.current, nowMs: clock.now() })
  const url = `${webUrl}${PATHS.paymentsWebhook}`
  const deliver = (signature: string) =>
    send(input, {
      method: 'POST',
      url,
      silence: `${new URL(url).origin} gave no answer: check the address, and that it is reached from here.`,
      headers: { 'content-type': 'application/json', 'stripe-signature': signature },
      body,
    })
  const forged = await deliver(header.replace(/.$/, (last) => (last === '0' ? '1' : '0')))
  if (forged.kind !== 'answer') return { name, ...forged.problem }
  if (forged.status === 503)
    return failed(
      name,
      'the service answered that payments are not configured: start it with the same environment.',
    )
  if (forged.status < 400)
    return failed(name, `the service took an event whose signature does not fit (${forged.status}).`)
  const first = await deliver(header)
  if (first.kind !== 'answer') return { name, ...first.problem }
  if (first.status === forged.status && first.body.code === forged.body.code)
    return failed(
      name,
      'the service refused the signature: it was started with another PAYMENTS_WEBHOOK_SECRET, or its clock is off.',
    )
  if (first.status !== 200 || first.body.received !== true) return unexpected(name, first.status)
  const second = await deliver(header)
  if (second.kind !== 'answer') return { name, ...second.problem }
  return second.status === 200 && second.body.duplicate === true
    ? passed(name, 'a signed event was taken once, its repetition known, a forged one refused')
    : failed(name, 'a repeated event was not recognised as one.')
}

type Answer =
  | { readonly kind: 'answer'; readonly status: number; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: 'problem'; readonly problem: Omit<SmokeCheck, 'name'> }

/** Sends a request to the payments API. A refused key is reported as a problem, not as an answer. */
async function ask(
  input: SmokeInput,
  method: 'GET' | 'POST',
  path: string,
  form?: Readonly<Record<string, string>>,
): Promise<Answer> {
  const answer = await send(input, {
    method,
    url: `${input.payments.apiUrl}${path}`,
    // Names the variable, because a value of the environment is not shown.
    silence: 'the payments API gave no answer: check PAYMENTS_API_URL, and that it is reached from here.',
    headers: {
      authorization: `Bearer ${input.payments.secretKey.reveal()}`,
      ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
    },
    ...(form && { body: new URLSearchParams(form).toString() }),
  })
  if (answer.kind === 'answer' && (answer.status === 401 || answer.status === 403))
    return unreached('the payments API refused PAYMENTS_SECRET_KEY: it was revoked, or may not do this.')
  return answer
}

async function send(
  { signal }: SmokeInput,
  input: {
    method: 'GET' | 'POST'
    url: string
    /** The message if no answer comes. */
    silence: string
    headers: Record<string, string>
    body?: string
  },
): Promise<Answer> {
  const { url, silence, ...options } = input
  try {
    const { statusCode, body } = await request(url, {
      ...options,
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    })
    const text = (await body.text()).slice(0, LARGEST_ANSWER_BYTES)
    return { kind: 'answer', status: statusCode, body: objectOf(text) }
  } catch {
    return unreached(silence)
  }
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

const passed = (name: string, finding: string): SmokeCheck => ({ name, state: 'passed', finding })
const failed = (name: string, finding: string): SmokeCheck => ({ name, state: 'failed', finding })
const unexpected = (name: string, status: number): SmokeCheck =>
  failed(
    name,
    `the answer was ${status}, and not what the API documents: look into the provider’s log of requests.`,
  )
const unreached = (finding: string): Answer => ({ kind: 'problem', problem: { state: 'unreached', finding } })
