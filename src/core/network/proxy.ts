import type { Environment } from '../env/environment.ts'

/** As HTTP_PROXY, HTTPS_PROXY and NO_PROXY say, in either case. */
interface Proxies {
  readonly httpProxy: string
  readonly httpsProxy: string
  readonly noProxy: string
}

/** This machine is never behind a proxy. */
const HERE = 'localhost,127.0.0.1,[::1]'

let proxies = read(process.env)

function read(env: Environment): Proxies | undefined {
  const of = (name: string) => env[name.toLowerCase()]?.trim() || env[name]?.trim() || ''
  const [httpProxy, httpsProxy] = [of('HTTP_PROXY'), of('HTTPS_PROXY')]
  if (httpProxy === '' && httpsProxy === '') return undefined
  return { httpProxy, httpsProxy: httpsProxy || httpProxy, noProxy: `${HERE},${of('NO_PROXY')}` }
}

/** Takes the proxies of an environment that files are a part of, for all calls of this process from now on. */
export function useProxies(env: Environment): void {
  proxies = read(env)
}

/** What undici's EnvHttpProxyAgent takes; undefined if there is no proxy. */
export const proxyOptions = (): Proxies | undefined => proxies

/** The proxy of an address, for what speaks HTTP on a socket of its own; undefined if it is called directly. */
export function proxyOf({ protocol, hostname, port }: URL): URL | undefined {
  const { httpProxy, httpsProxy, noProxy = '' } = proxies ?? {}
  const proxy = protocol === 'https:' ? httpsProxy : httpProxy
  if (!proxy) return undefined
  const own = port || (protocol === 'https:' ? '443' : '80')
  const isExempt = noProxy.split(/[,\s]+/).some((entry) => {
    const [, name = '', only] = /^(?:\*?\.)?(\*|\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    if (name === '' || (only !== undefined && only !== own)) return false
    return name === '*' || hostname === name || hostname.endsWith(`.${name}`)
  })
  return isExempt ? undefined : new URL(proxy.includes('://') ? proxy : `http://${proxy}`)
}

/** `fetch`, through the proxy of the address. */
export const proxiedFetch: typeof fetch = async (input, init) => {
  if (proxies === undefined) return fetch(input, init)
  const { EnvHttpProxyAgent, fetch: through } = await import('undici')
  const dispatcher = new EnvHttpProxyAgent(proxies)
  // The package's types of fetch are those of Node's, but for the name of the module that declares them.
  return through(input as string, { ...(init as object), dispatcher }) as unknown as Promise<Response>
}
