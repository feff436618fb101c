import type { DispatchResult } from '../core/course/dispatch.ts'
import type { Environment } from '../core/env/settings.ts'
import { jsonObject } from '../core/is-record.ts'
import { isHere } from '../core/network/connect.ts'
import { exchange } from '../core/network/exchange.ts'
import { isBearerToken, splitList } from '../core/secret.ts'
import { trimEnd } from '../core/trim-end.ts'
import { CommandError, type Context, EXIT, wrongUsage } from './context.ts'
import { complain } from './output/text.ts'

const unreached = (message: string) => new CommandError(EXIT.remote, message)

/** A summary names up to 10,000 lessons. */
const LARGEST_ANSWER_BYTES = 16 * 1024 * 1024

function post(signal: AbortSignal, { url, secret }: Endpoint, patienceMs: number, body?: unknown) {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const asked = { method: 'POST', signal, headers, body: JSON.stringify(body) ?? null } as const
  return exchange(url.href, asked, LARGEST_ANSWER_BYTES, patienceMs)
}

type Endpoint = Readonly<ReturnType<typeof webEndpoint>>

/** An endpoint of the running web service, and the secret that opens it. */
export function webEndpoint(context: Context, env: Environment, given: string | undefined, path: string) {
  // While it is rotated the variable holds two: the first is the one to send.
  const [secret] = splitList(env.EMAIL_DISPATCH_SECRET ?? '')
  const site = given ?? (env.NEXT_PUBLIC_SITE_URL?.trim() || context.daemon?.urls.web)
  if (!site)
    throw wrongUsage(
      'the address of the web service is needed: --url, or NEXT_PUBLIC_SITE_URL (or --local for this machine’s store).',
    )
  if (!/^https?:\/\/[^?#]+$/.test(site) || !URL.canParse(site))
    throw wrongUsage('the address of the web service is not an http:// or https:// address without a query.')
  if (!secret)
    throw wrongUsage(
      'EMAIL_DISPATCH_SECRET is not set: set the same one as the web service, here or with --env-file.',
    )
  if (!isBearerToken(secret))
    throw wrongUsage(
      'EMAIL_DISPATCH_SECRET has a character that is not allowed in an HTTP header: choose another secret, for the web service too.',
    )
  const url = new URL(`${trimEnd(site, '/')}${path}`)
  if (url.protocol === 'http:' && !isHere(url))
    complain(context, 'EMAIL_DISPATCH_SECRET travels unencrypted: use the https:// address of the service.')
  return { url, secret }
}

const PATIENCE_MS = 5000
const PAUSES_MS = [1000, 3000]

/** Posts to such an endpoint, three times if the service is away or limits us, and gives that field of its answer; throws if there is none. */
export async function postToWeb(
  context: Pick<Context, 'clock' | 'signal'>,
  { url, secret, body }: Endpoint & { readonly body: unknown },
  field: string,
): Promise<string> {
  const ask = () => post(context.signal, { url, secret }, PATIENCE_MS, body).catch(() => undefined)
  const isAway = (status = 500) => status >= 500 || status === 429
  let answer = await ask()
  for (const pause of PAUSES_MS) {
    if (!isAway(answer?.status) || context.signal.aborted) break
    await context.clock.sleep(pause, context.signal).catch(() => {})
    answer = await ask()
  }
  if (answer === undefined) throw silent(url)
  if (answer.status === 401) throw refused()
  const said: Readonly<Record<string, unknown>> = isAway(answer.status) ? {} : jsonObject(answer.text)
  const { [field]: told, message } = said
  if (answer.status === 200 && typeof told === 'string') return told
  const fault = answer.status === 200 ? ', but not as platformctl does: is the address right?' : '.'
  throw unreached(
    `the service answered ${answer.status}${typeof message === 'string' ? `: ${message}` : fault}`,
  )
}

const silent = ({ origin }: URL) =>
  unreached(`${origin} could not be reached: is the web service running, and the address right?`)

const refused = () =>
  unreached('the service refused EMAIL_DISPATCH_SECRET: it must be the one the service was started with.')

/** A call sends up to 10,000 mails: it may take its time. */
const DISPATCH_PATIENCE_MS = 25 * 60 * 1000

export async function callDispatch({ signal }: Context, endpoint: Endpoint): Promise<DispatchResult> {
  const response = await post(signal, endpoint, DISPATCH_PATIENCE_MS).catch((error: unknown) => {
    if (signal.aborted)
      throw unreached(
        'stopped before the service answered; the service goes on with this call and records it.',
      )
    if (!(error instanceof Error && error.name === 'TimeoutError')) throw silent(endpoint.url)
    throw unreached(
      `${endpoint.url.origin} did not answer within ${DISPATCH_PATIENCE_MS / 60_000} minutes; the service goes on with this call and records it.`,
    )
  })
  if (response.status === 401) throw refused()
  const { DispatchAnswer } = await import('../daemon/routes/dispatch.ts')
  const body = jsonObject(response.text)
  // Loose: a newer service may say more.
  const answer = DispatchAnswer.loose().safeParse(body)
  if (response.status === 200 && answer.success) return answer.data
  const { code, message } = body
  const isProblem = typeof code === 'string' && typeof message === 'string'
  throw unreached(
    `the service answered ${response.status}${isProblem ? `: ${message}` : ', and not as a dispatch endpoint'}`,
  )
}
