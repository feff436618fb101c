import { type Dispatcher, EnvHttpProxyAgent, getGlobalDispatcher, Pool, request } from 'undici'
import { within } from '../host.ts'
import { boundedBody, proxyOf, proxyOptions, sharedAgent } from './proxy.ts'

/** Connections to one origin, through its proxy where it has one. */
export function dispatcherTo(origin: string, options: Pool.Options = {}): Dispatcher {
  return proxyOf(new URL(origin)) === undefined
    ? new Pool(origin, options)
    : new EnvHttpProxyAgent({ ...options, ...proxyOptions() })
}

type ExchangeOptions = Pick<Dispatcher.DispatchOptions, 'method' | 'headers' | 'body'> & {
  readonly signal?: AbortSignal
  readonly dispatcher?: Dispatcher
}

/** One bounded request. Raced against a timer, not only aborted, because name resolution ignores a signal. */
export function exchange(
  url: string,
  { signal, ...options }: ExchangeOptions,
  mostBytes: number,
  withinMs: number,
): Promise<{ readonly status: number; readonly text: string }> {
  const stop = new AbortController()
  const ask = async () => {
    const ends = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal
    const dispatcher = sharedAgent(EnvHttpProxyAgent) ?? getGlobalDispatcher()
    // `withinMs` bounds all of it.
    const asked = { dispatcher, headersTimeout: 0, bodyTimeout: 0, ...options, signal: ends }
    const { statusCode, body } = await request(url, asked)
    return { status: statusCode, text: (await boundedBody(body, mostBytes)).toString() }
  }
  return within(withinMs, ask(), () => {
    stop.abort()
    throw new DOMException('no answer in time', 'TimeoutError')
  })
}
