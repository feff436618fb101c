import type { Dispatcher } from 'undici'
import { once, succeeds } from '../../calls.ts'
import type { ApiProvider } from '../../env/settings.ts'
import { codeOf } from '../../errors.ts'
import { systemClock, within } from '../../host.ts'
import { jsonObject } from '../../is-record.ts'
import { dispatcherTo } from '../../network/exchange.ts'
import type { Network } from '../../network/get.ts'
import { proxyOf } from '../../network/proxy.ts'
import type { Secret } from '../../secret.ts'
import { LINES, type Message, type Outcome, type Transport, type WaitUntilRecorded } from '../mailer.ts'
import { type HttpFault, httpOutcome, MailFault } from '../outcome.ts'
import { API_FORMS, type ProviderResponse } from './forms.ts'

const LARGEST_ANSWER_BYTES = 64 * 1024
const NEVER_LEFT: HttpFault = { neverLeft: true }

/**
 * One request and its answer, cut if it has no end. Straight on undici's dispatcher: a stream and an abort listener
 * for each answer of a few bytes would cost as much as the request. Rejects with an HttpFault.
 */
function exchange(pool: Dispatcher, request: Dispatcher.DispatchOptions, signal: AbortSignal | undefined) {
  return new Promise<ProviderResponse>((resolve, reject) => {
    if (signal?.aborted) return reject(NEVER_LEFT)
    let start: Omit<ProviderResponse, 'text'> | undefined
    let length = 0
    const chunks: Buffer[] = []
    let stop: (() => void) | undefined
    let isLate = false
    // First for a connection, since a proxy may say nothing for minutes, then for a whole answer: undici limits neither.
    const patience = setTimeout(() => {
      if (start) return cut()
      isLate = stop === undefined
      if (isLate) reject(NEVER_LEFT)
    }, ANSWER_MS)
    const ended = () => {
      clearTimeout(patience)
      if (stop) signal?.removeEventListener('abort', stop)
    }
    const finish = () => {
      ended()
      if (start) resolve({ ...start, text: Buffer.concat(chunks).toString() })
    }
    const cut = () => {
      finish()
      stop?.()
    }
    pool.dispatch(request, {
      onRequestStart(controller) {
        if (isLate || signal?.aborted) return controller.abort(new Error('too late'))
        stop = () => controller.abort(new Error('aborted'))
        signal?.addEventListener('abort', stop, { once: true })
      },
      onResponseStart(_, statusCode, fields) {
        const text = (name: string) => (Array.isArray(fields[name]) ? fields[name][0] : fields[name])
        const [retryAfter, date, errorType] = [text('retry-after'), text('date'), text('x-amzn-errortype')]
        start = { status: statusCode, retryAfter, date, errorType }
        patience.refresh()
      },
      onResponseData(_, chunk) {
        chunks.push(chunk)
        length += chunk.length
        if (length > LARGEST_ANSWER_BYTES) cut()
      },
      onResponseEnd: finish,
      onResponseError(_, error) {
        // Its status says what became of the message.
        if (start) return finish()
        ended()
        reject({ errno: codeOf(error), neverLeft: stop === undefined } satisfies HttpFault)
      },
    })
  })
}

const CONNECT_MS = 10_000
const ANSWER_MS = 30_000
/** Mail APIs take addresses as text and parse them, and quoted local parts are where such parsers go wrong. */
const NEEDS_NO_QUOTES = /^[^\s"<>,;:()[\]\\]+@[^\s"<>,;:()[\]\\@]+$/

/** A provider's HTTP API, one POST a message. Any 2xx is sent. Redirects are not followed. */
export function openApi(input: {
  readonly url: string
  readonly key: Secret
  readonly provider?: ApiProvider | undefined
  /** The real time, which signatures hold. */
  readonly now?: () => number
  readonly onDate?: Network['onDate']
}): Transport {
  const { key, provider = 'resend', now = systemClock.now, onDate } = input
  const form = API_FORMS[provider]
  const url = new URL(input.url)
  const { origin, pathname, search } = url
  const path = pathname === '/' && form.path !== undefined ? form.path : pathname + search
  const spoken = form.open(key, url, now)
  const slots = freeSlots()
  const isProxied = proxyOf(url) !== undefined
  const pool = dispatcherTo(origin, {
    connections: LINES.api,
    pipelining: 1,
    allowH2: false,
    connectTimeout: CONNECT_MS,
    keepAliveTimeout: 30_000,
    headersTimeout: ANSWER_MS,
    bodyTimeout: ANSWER_MS,
  })

  async function post(message: Message, signal: AbortSignal | undefined): Promise<Outcome> {
    try {
      const { headers, body } = spoken.request(message, path)
      const typed = { 'content-type': 'application/json', ...headers }
      const answer = await exchange(pool, { origin, method: 'POST', path, headers: typed, body }, signal)
      const { status } = answer
      // Any 2xx says that the mail was taken, whatever the body holds.
      const read = jsonObject(answer.text)
      if (status < 200 || status >= 300)
        return httpOutcome({ status, row: form.rowOf?.(answer, read) }, retryAfterMs(answer))
      const id = read[form.idIn]
      // Shown to operators, on a line of its own.
      const isPlain = typeof id === 'string' && /^[!-~]+$/.test(id)
      return { kind: 'sent', id: isPlain ? id.slice(0, 200) : message.key }
    } catch (fault) {
      return httpOutcome({ ...(fault as HttpFault), isProxied })
    }
  }

  return {
    kind: form.kind,
    async send(message, signal, recorded) {
      const reason = 'the address cannot be given to a mail API safely'
      if (!NEEDS_NO_QUOTES.test(message.to.address)) return { kind: 'permanent', hardBounce: false, reason }
      return form.honorsKey || recorded === undefined
        ? post(message, signal)
        : slots(() => post(message, signal), recorded)
    },
    async verify(signal) {
      const answer = await exchange(pool, { origin, path, ...spoken.check(), body: null }, signal).catch(
        (fault: HttpFault) => {
          const { reason, kind } = httpOutcome({ ...fault, isProxied })
          throw new MailFault(kind === 'unknown' ? 'the mail provider does not answer' : reason)
        },
      )
      const { status } = answer
      onDate?.(url.hostname, Date.parse(answer.date ?? ''))
      const isRefused = (status === 401 || status === 403) && !form.knowsKey?.(answer)
      // A gateway answers 502 to 504 while the provider behind it is away.
      if (isRefused || (status >= 502 && status <= 504)) throw new MailFault(httpOutcome({ status }).reason)
    },
    // A proxy that says nothing would keep it open for good.
    close: once(() => within(2 * ANSWER_MS, pool.close(), () => pool.destroy())),
  }
}

/** Begins no request in a slot before the last message there is recorded: a crash repeats at most one for each slot. */
function freeSlots() {
  const free: (WaitUntilRecorded | undefined)[] = []
  return async (post: () => Promise<Outcome>, recorded: WaitUntilRecorded): Promise<Outcome> => {
    const before = free.shift()
    if (before && !(await succeeds(before()))) return httpOutcome({ row: 'not-recorded' })
    const outcome = await post()
    free.push(outcome.kind === 'sent' || outcome.kind === 'unknown' ? recorded : undefined)
    return outcome
  }
}

/** Seconds or a date (RFC 9110 §10.2.3). */
function retryAfterMs({ retryAfter, date }: ProviderResponse): number | undefined {
  if (retryAfter === undefined) return undefined
  const ms = /^\d+$/.test(retryAfter)
    ? Number(retryAfter) * 1000
    : Date.parse(retryAfter) - Date.parse(date ?? '')
  return ms >= 0 ? ms : undefined
}
