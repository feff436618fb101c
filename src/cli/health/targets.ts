import { SERVICES, type Service } from '../../core/service.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../exit.ts'
import { unknownName } from '../suggest.ts'

export interface Target {
  readonly service: Service
  readonly url: string
}

/** 127.0.0.1 and not localhost: some systems try ::1 first, where nothing listens. */
const DEFAULTS: Readonly<Record<Service, { readonly names: readonly string[]; readonly url: string }>> = {
  web: { names: ['NEXT_PUBLIC_SITE_URL'], url: 'http://127.0.0.1:3000' },
  api: { names: ['API_URL', 'NEXT_PUBLIC_API_URL'], url: 'http://127.0.0.1:8000' },
  agent: { names: ['AGENT_URL', 'NEXT_PUBLIC_AGENT_URL'], url: 'http://127.0.0.1:8100' },
}

/**
 * Which services are asked and where: the addresses named, else those of the env files, else this machine. Named
 * addresses name the services too: the others may not run at all.
 */
export function targetsOf(
  { url, service }: { readonly url: readonly string[]; readonly service?: readonly Service[] },
  fileEnv: Context['env'] | undefined,
): readonly Target[] {
  const given = new Map(url.map(parseAddress))
  const services = service ?? (given.size > 0 ? SERVICES.filter((name) => given.has(name)) : SERVICES)
  const unused = [...given.keys()].filter((name) => !services.includes(name))
  if (unused.length > 0)
    throw new CommandError(
      EXIT.usage,
      `--url names ${unused.join(' and ')}, and --service leaves it out: drop one of the two.`,
    )
  return services.map((name) => ({
    service: name,
    url: given.get(name) ?? addressIn(fileEnv ?? {}, name) ?? DEFAULTS[name].url,
  }))
}

/** A malformed address behaves as absent; with no other one this machine must not be asked in place of what was meant. */
function addressIn(env: Context['env'], service: Service): string | undefined {
  const set = DEFAULTS[service].names.flatMap((variable) => {
    const value = env[variable]?.trim()
    return value ? [{ variable, value }] : []
  })
  const usable = set.find(({ value }) => isAddress(value))?.value
  if (usable === undefined && set[0] !== undefined)
    throw new CommandError(
      EXIT.usage,
      `${set[0].variable} does not hold ${ADDRESS}: correct it, or name the address with --url ${service}=….`,
    )
  return usable
}

const ADDRESS = 'an http:// or https:// address without a user name, a query or a fragment'

function parseAddress(word: string): readonly [Service, string] {
  const at = word.indexOf('=')
  const name = word.slice(0, Math.max(at, 0)).trim()
  const service = SERVICES.find((one) => one === name)
  if (service === undefined && /^[a-z]{1,12}$/.test(name))
    throw unknownName({ kind: 'service', name, known: SERVICES })
  // What was given is not repeated: an address can hold a password.
  if (service === undefined)
    throw new CommandError(EXIT.usage, '--url takes web=ADDRESS, api=ADDRESS or agent=ADDRESS.')
  const url = word.slice(at + 1)
  if (!isAddress(url)) throw new CommandError(EXIT.usage, `--url ${service}=… needs ${ADDRESS}.`)
  return [service, url]
}

function isAddress(value: string): boolean {
  if (!/^https?:\/\/[^\s/?#]/i.test(value) || !URL.canParse(value)) return false
  const { username, password, search, hash } = new URL(value)
  return username === '' && password === '' && search === '' && hash === ''
}
