import { networkInterfaces } from 'node:os'
import type { EnvHttpProxyAgent } from 'undici'
import type { Environment } from '../env/settings.ts'
import { codeError } from '../errors.ts'
import { percentDecoded } from '../is-record.ts'

/** This machine, which is never behind a proxy; a daemon may listen on every address or on one of its own. */
const here = () => [
  ...['localhost', '127.0.0.1', '[::1]', '0.0.0.0', '[::]'],
  ...Object.values(networkInterfaces()).flatMap((one = []) =>
    one.map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address)),
  ),
]

/** As HTTP_PROXY, HTTPS_PROXY and NO_PROXY say, in either case. */
let proxies: Readonly<Record<'httpProxy' | 'httpsProxy' | 'noProxy', string>> | undefined
let shared: EnvHttpProxyAgent | undefined

/** Sends all calls of this process through the proxies of an environment from now on. */
export function useProxies(env: Environment): void {
  const of = (name: string) => env[name.toLowerCase()]?.trim() || env[name]?.trim() || ''
  const [httpProxy, httpsProxy] = [of('HTTP_PROXY'), of('HTTPS_PROXY')]
  shared = undefined
  proxies =
    httpProxy === '' && httpsProxy === ''
      ? undefined
      : { httpProxy, httpsProxy: httpsProxy || httpProxy, noProxy: [...here(), of('NO_PROXY')].join() }
}

/** What undici's EnvHttpProxyAgent takes; undefined if there is no proxy. */
export const proxyOptions = () => proxies

/** The one agent for single calls to any origin, of undici's class; undefined if there is no proxy. */
export function sharedAgent(Agent: typeof EnvHttpProxyAgent): EnvHttpProxyAgent | undefined {
  shared ??= proxies && new Agent(proxies)
  return shared
}

/** The proxy of an http(s) address; undefined if it is called directly. */
export function proxyOf({ protocol, hostname, port }: URL): URL | undefined {
  const { httpProxy, httpsProxy, noProxy = '' } = proxies ?? {}
  const proxy = protocol === 'https:' ? httpsProxy : protocol === 'http:' ? httpProxy : ''
  if (!proxy) return undefined
  const own = port || (protocol === 'https:' ? '443' : '80')
  const isExempt = noProxy.split(/[,\s]+/).some((entry) => {
    const [, name = '', only] = /^(?:\*?\.)?(\*|\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    if (name === '' || (only !== undefined && only !== own)) return false
    return name === '*' || hostname === name || hostname.endsWith(`.${name}`)
  })
  return isExempt ? undefined : new URL(proxy.includes('://') ? proxy : `http://${proxy}`)
}

/** Basic authorization (RFC 7617) from the user name in an address, of which `fetch` makes an error. */
export const loginOf = ({ username, password }: URL, header = 'authorization') => {
  const login = `${percentDecoded(username)}:${percentDecoded(password)}`
  return username + password === '' ? {} : { [header]: `Basic ${Buffer.from(login).toString('base64')}` }
}

/** One call, through the proxy of its address, where it has one. */
export async function proxiedFetch(address: string, init: RequestInit = {}): Promise<Response> {
  const url = new URL(address)
  const options = { ...init, headers: { ...loginOf(url), ...Object.fromEntries(new Headers(init.headers)) } }
  const input = Object.assign(url, { username: '', password: '' })
  if (proxies === undefined) return fetch(input, options)
  const { EnvHttpProxyAgent, fetch: through } = await import('undici')
  const dispatcher = sharedAgent(EnvHttpProxyAgent)
  // The package's types of fetch are those of Node's, but for the name of the module that declares them.
  return through(input, { ...options, dispatcher } as object) as unknown as Promise<Response>
}

/** The whole body of an answer. Of a larger one it gives the beginning if `isCut`, and rejects otherwise; it reads no further. */
export async function boundedBody(body: AsyncIterable<Uint8Array> | null, most: number, isCut = false) {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.byteLength
    if (size > most && !isCut) throw codeError('too_large')
    chunks.push(chunk)
    if (size >= most && isCut) break
  }
  return Buffer.concat(chunks, Math.min(size, most))
}
