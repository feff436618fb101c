import type { RemoteProbeInput } from '../../core/health/prober.ts'
import { nearestOf } from '../../core/nearest.ts'
import { isHere } from '../../core/network/connect.ts'
import { isBearerToken, splitList } from '../../core/secret.ts'
import { or } from '../../core/sentences.ts'
import type { Service, ServiceDefinition } from '../../core/service.ts'
import { type Context, type UsedDaemon, wrongUsage } from '../context.ts'
import { unknownName } from '../inputs.ts'
import { complain } from '../output/text.ts'

export type HealthEndpoint = Pick<RemoteProbeInput, 'service' | 'url' | 'health' | 'format'>

/**
 * The services to ask: those named, else those of the env files, of the daemon that runs here, of this machine. Named addresses
 * select the services, as the others may not run at all; an unknown name is another program, with the address of its health.
 */
export function targetsOf(
  services: readonly ServiceDefinition[],
  named: { readonly url: readonly string[]; readonly service?: readonly Service[] | undefined },
  fileEnv: Context['env'] | undefined,
  running: UsedDaemon['urls'] = {},
): readonly HealthEndpoint[] {
  const { url, service: wanted } = named
  const given = new Map(url.map((word) => parseAddress(services, word)))
  if (given.size < url.length)
    throw wrongUsage(
      '--url gives one service two addresses: ask each by itself, or call the other one by another name.',
    )
  const inFile = services.filter(({ address = [] }) => address.some((name) => fileEnv?.[name]?.trim()))
  const addressed = given.size > 0 ? [...given.keys()] : inFile.map(({ name }) => name)
  const isAsked = (name: Service) =>
    wanted?.includes(name) ?? (addressed.length === 0 || addressed.includes(name))
  const others = [...given.keys()].filter((name) => !services.some((service) => service.name === name))
  const asked: readonly TargetService[] = [
    ...services.filter(({ name }) => isAsked(name)),
    ...(wanted === undefined ? others : []).map((name) => ({ name, health: '', format: 'any' as const })),
  ]
  const unused = [...given.keys()].filter((name) => !asked.some((service) => service.name === name))
  if (unused.length > 0)
    throw wrongUsage(`--url names ${unused.join(' and ')}, and --service leaves it out: drop one of the two.`)
  return asked.flatMap((service) => {
    const { name, health, format, port } = service
    // 127.0.0.1 and not localhost: some systems try ::1 first, where nothing listens.
    const here = port === undefined ? undefined : `http://127.0.0.1:${port}`
    const address = given.get(name) ?? addressIn(fileEnv ?? {}, service) ?? running[name] ?? here
    if (address !== undefined) return { service: name, url: address, health, format }
    if (wanted === undefined) return []
    throw wrongUsage(
      `the address of ${name} is not known: set ${service.address?.[0] ?? 'it'}, or name it with --url ${name}=….`,
    )
  })
}

type TargetService = Pick<ServiceDefinition, 'name' | 'health' | 'address' | 'port'> &
  Pick<HealthEndpoint, 'format'>

/** The first usable address. If all are malformed it throws, so that this machine is not asked instead of the one meant. */
function addressIn(env: Context['env'], { name, address = [] }: TargetService): string | undefined {
  const set = address.filter((variable) => env[variable]?.trim())
  const usable = set.map((variable) => env[variable]?.trim() ?? '').find(isAddress)
  if (usable === undefined && set.length > 0)
    throw wrongUsage(
      `${set[0]} does not hold ${ADDRESS}: correct it, or name the address with --url ${name}=….`,
    )
  return usable
}

export const ADDRESS = 'an http:// or https:// address without a user name, a query or a fragment'

/** `web=https://www.example.com` as a name and an address. */
export function parseAddress(services: readonly ServiceDefinition[], word: string, option = '--url') {
  const at = word.indexOf('=')
  const name = word.slice(0, Math.max(at, 0)).trim()
  const names = services.map((one) => one.name)
  // Reject likely typos, or they would be asked as another program.
  if (!names.includes(name) && nearestOf(name, names) !== undefined)
    throw unknownName({ kind: 'service', name, known: names })
  // Don't repeat the input: an address can contain a password.
  if (!/^[a-z][a-z0-9_-]{0,31}$/.test(name))
    throw wrongUsage(
      `${option} takes ${or(names.map((name) => `${name}=ADDRESS`))}, or NAME=ADDRESS for another program.`,
    )
  const url = word.slice(at + 1)
  if (!isAddress(url)) throw wrongUsage(`${option} ${name}=… needs ${ADDRESS}.`)
  return [name, url] as const
}

/** An address that a path can be put behind. */
export function isAddress(value: string): boolean {
  if (!/^https?:\/\/[^\s/?#]/i.test(value) || !URL.canParse(value)) return false
  const { username, password, search, hash } = new URL(value)
  return username === '' && password === '' && search === '' && hash === ''
}

const DEFAULT_NAME = 'HEALTH_DEEP_TOKEN'

/** The token to send to these targets. A source that was named must hold one; a platform may leave deep checks open. */
export async function readToken(
  context: Context,
  { tokenEnv, tokenFile }: Partial<Readonly<Record<'tokenEnv' | 'tokenFile', string | undefined>>>,
  env: Context['env'],
  targets: readonly HealthEndpoint[],
): Promise<string | undefined> {
  const token = tokenFile === undefined ? tokenOf(env, tokenEnv) : await tokenIn(context, tokenFile)
  if (tokenFile !== undefined && token === undefined)
    throw wrongUsage('the file that --token-file names holds no token: it is empty.')
  if (token !== undefined && !isBearerToken(token))
    throw wrongUsage(
      'the token has a character that is not allowed in an HTTP header: paste the whole token, and nothing else.',
    )
  if (token === undefined) return undefined
  const open = targets.filter(({ url }) => /^http:/i.test(url) && !isHere(new URL(url)))
  for (const service of new Set(open.map(({ service }) => service)))
    complain(context, `the token travels unencrypted to ${service}: use its https:// address.`)
  return token
}

async function tokenIn(context: Context, file: string): Promise<string | undefined> {
  const { readTextFile } = await import('../environment.ts')
  const text = await readTextFile(context, file).catch((error: Error) => {
    // What does not look like a file may be the token.
    const shown = /[\\/]|\.\w{1,8}$/.test(file) ? file : 'the file that --token-file names'
    throw wrongUsage(error.message.replace(file, shown))
  })
  return splitList(text)[0]
}

function tokenOf(env: Context['env'], name: string | undefined): string | undefined {
  const value = env[name ?? DEFAULT_NAME]?.trim() || undefined
  // While it is rotated the variable, and so its file, holds two: the first is the one to send.
  const token = name === undefined || name === DEFAULT_NAME ? splitList(value ?? '')[0] : value
  if (token === undefined && name !== undefined)
    // A token in its place is not repeated.
    throw wrongUsage(
      `the variable${/^[A-Z][A-Z\d_]*$/.test(name) ? ` ${name}` : ''} that --token-env names is not set.`,
    )
  return token
}
