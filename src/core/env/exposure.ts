import type { Finding } from '../finding.ts'
import { parseProxies } from './values.ts'

type Warning = Pick<Finding, 'id' | 'cause' | 'fix'>

/** Warnings about well-formed values that leave something open to others on the network. */
export function exposureWarnings(input: {
  readonly variable: { readonly name: string; readonly kind: string }
  readonly value: string
  /** DEPLOY_ENVIRONMENT. */
  readonly environment: string | undefined
}): Warning[] {
  const {
    variable: { name, kind },
    value,
    environment,
  } = input
  if (kind === 'proxies' && trustsEverybody(value))
    return [
      {
        id: 'trusts-everybody',
        cause: `${name} trusts every address, so every client can choose the address that limits count it by.`,
        fix: 'Name the addresses or ranges of your own proxies.',
      },
    ]
  if (environment !== 'production' || !/^(?:url|store-url)$/.test(kind)) return []
  const url = URL.parse(value)
  if (kind === 'url' && url?.protocol === 'http:' && !isPrivate(url.hostname))
    return [
      {
        id: 'plain-http',
        cause: `${name} is an http:// address and DEPLOY_ENVIRONMENT is production: what travels there can be read and changed.`,
        fix: 'Use the https:// address.',
      },
    ]
  if (kind === 'store-url' && url && /^postgres(?:ql)?:$/.test(url.protocol) && !hasTls(url))
    return [
      {
        id: 'store-without-tls',
        cause: `${name} connects without TLS and DEPLOY_ENVIRONMENT is production: addresses and the password can be read on the way.`,
        fix: 'Add ?sslmode=verify-full (or require) to the address.',
      },
    ]
  return []
}

/** Ranges this wide hold half the internet; nobody's proxies do. */
const WIDEST = { ipv4: 2, ipv6: 3 } as const

function trustsEverybody(value: string): boolean {
  return (parseProxies(value) ?? []).some((proxy) => {
    const [address = '', bits] = proxy.split('/')
    return bits !== undefined && Number(bits) <= (address.includes(':') ? WIDEST.ipv6 : WIDEST.ipv4)
  })
}

/** Whether only a private network knows this name or address. */
function isPrivate(host: string): boolean {
  return (
    !/[.:]/.test(host) ||
    /\.(?:internal|local|localhost|lan|home\.arpa|svc|test)$/i.test(host) ||
    /^(?:127|10)\.|^192\.168\.|^172\.(?:1[6-9]|2\d|3[01])\.|^\[(?:::1|f[cd][0-9a-f]{2}:.*)\]$/i.test(host)
  )
}

function hasTls({ hostname, searchParams }: URL): boolean {
  const here =
    /^(?:localhost|127(?:\.\d+){3}|\[::1\]|%2f.*)?$/i.test(hostname) ||
    (searchParams.get('host') ?? '').startsWith('/')
  return here || /^(?:require|verify-ca|verify-full)$/.test(searchParams.get('sslmode') ?? '')
}
