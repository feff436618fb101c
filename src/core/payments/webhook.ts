import { createHmac, timingSafeEqual } from 'node:crypto'
import { DAY_MS, MINUTE_MS } from '../durations.ts'
import { PlatformError } from '../errors.ts'
import type { Host } from '../host.ts'
import { isRecent, unixTime } from '../mail/feedback/provider.ts'
import type { RotatingSecret, Secret } from '../secret.ts'
import type { Store } from '../store/store.ts'

/** A verified event of the payments provider. What its `data` means is for the host to decide. */
export interface PaymentEvent {
  /** The provider's id: the same for every delivery of the event. */
  readonly id: string
  /** `checkout.session.completed`, `customer.subscription.deleted` … */
  readonly type: string
  /** UTC milliseconds at which the provider made it. */
  readonly createdAt: number
  /** The event's object, as the provider sent it. */
  readonly data: Readonly<Record<string, unknown>>
}

/** The host's handler. It is called until it has handled an event once; a throw asks for another delivery. */
export type OnPaymentEvent = (event: PaymentEvent) => void | Promise<void>

export const SIGNATURE_HEADER = 'Stripe-Signature'
const LEASE_MS = 60_000
/** A handler that takes longer hangs: the event is then claimed again. */
const LONGEST_MS = 15 * MINUTE_MS
const MOST_SIGNATURES = 8

const hmac = (secret: Secret, time: number | string, body: string) =>
  createHmac('sha256', secret.reveal()).update(`${time}.${body}`)

/** The provider's signature of a webhook body: `t=UNIX_SECONDS,v1=HEX`, HMAC-SHA256 over `t.body`. */
export function signatureOf(body: string, secret: Secret, now: number): string {
  const time = Math.floor(now / 1000)
  return `t=${time},v1=${hmac(secret, time, body).digest('hex')}`
}

/** Reads the header; undefined: it does not have the provider's form. */
export function readSignature(header: string) {
  const fields = header.split(',').map((field) => field.trim().split('='))
  const all = (wanted: string) => fields.flatMap(([name, value = '']) => (name === wanted ? [value] : []))
  const [time = '', ...others] = all('t')
  const signatures = all('v1').filter((value) => /^[0-9a-f]{64}$/i.test(value))
  if (Number.isNaN(unixTime(time)) || others.length > 0 || signatures.length === 0) return undefined
  // The provider sends several while it rotates its own secret.
  const given = signatures.slice(0, MOST_SIGNATURES).map((value) => Buffer.from(value, 'hex'))
  return {
    /** Whether the body is signed with one of our secrets. */
    fits(body: string, { accepted }: RotatingSecret): boolean {
      const expected = accepted.map((one) => hmac(one, time, body).digest())
      return given.some((signature) => expected.some((one) => timingSafeEqual(signature, one)))
    },
    isRecent: (now: number) => isRecent(unixTime(time), now),
  }
}

/** Hands each event to the host once. `busy`: another delivery of it is being handled at this moment. */
export async function handlePaymentEvent(
  { clock, timer, log }: Pick<Host, 'clock' | 'timer' | 'log'>,
  event: PaymentEvent,
  store: Store['paymentEvents'],
  onEvent: OnPaymentEvent | undefined,
): Promise<'handled' | 'known' | 'busy'> {
  const { id, type } = event
  const claim = await store.claim({ id, type, now: clock.now(), leaseMs: LEASE_MS })
  if (claim !== 'claimed') return claim === 'handled' ? 'known' : 'busy'
  const ended = new AbortController()
  async function hold(): Promise<void> {
    for (let held = 0; held < LONGEST_MS; held += LEASE_MS / 3) {
      await timer.sleep(LEASE_MS / 3, ended.signal)
      await store.keep({ id, until: clock.now() + LEASE_MS }).catch(() => {})
    }
  }
  hold().catch(() => {})
  try {
    await onEvent?.(event)
  } catch (cause) {
    await store.settle({ id, handled: false, now: clock.now() })
    log.error(
      'payment_event_failed',
      'the host could not handle a payment event; it will be delivered again',
      { type, fault: cause instanceof Error ? cause.name : 'unknown' },
    )
    throw new PlatformError('unavailable', 'The event could not be handled now; deliver it again.', { cause })
  } finally {
    ended.abort('the handler has ended')
  }
  await store.settle({ id, handled: true, now: clock.now() })
  log.info('payment_event', 'a payment event was handled', { type, handledByHost: onEvent !== undefined })
  return 'handled'
}

/** Providers deliver an event again for days, and let an operator do so for a month: three times that. */
export const PAYMENT_EVENTS_KEPT_MS = 90 * DAY_MS
