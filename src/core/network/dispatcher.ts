import { type Dispatcher, EnvHttpProxyAgent, getGlobalDispatcher, Pool } from 'undici'
import { proxyOf, proxyOptions } from './proxy.ts'

let shared: { readonly of: object; readonly dispatcher: Dispatcher } | undefined

/** For single calls to any origin. */
export function dispatcherToAny(): Dispatcher {
  const proxies = proxyOptions()
  if (proxies === undefined) return getGlobalDispatcher()
  if (shared?.of !== proxies) shared = { of: proxies, dispatcher: new EnvHttpProxyAgent(proxies) }
  return shared.dispatcher
}

/** Connections to one origin, through its proxy where it has one. */
export function dispatcherTo(origin: string, options: Pool.Options = {}): Dispatcher {
  return proxyOf(new URL(origin)) === undefined
    ? new Pool(origin, options)
    : new EnvHttpProxyAgent({ ...options, ...proxyOptions() })
}
