import { isBearerToken, splitSecrets } from '../../core/secret.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../exit.ts'
import type { HealthEndpoint } from './targets.ts'

const DEFAULT_NAME = 'HEALTH_DEEP_TOKEN'

/**
 * The token for deep checks, from a file, the variable named, or HEALTH_DEEP_TOKEN. A source that was named must hold
 * one; without any the request goes without, because a platform may leave deep checks open.
 */
export async function readToken(
  context: Context,
  { tokenEnv, tokenFile }: { readonly tokenEnv?: string; readonly tokenFile?: string },
  env: Context['env'],
  targets: readonly HealthEndpoint[],
): Promise<string | undefined> {
  const token = tokenFile === undefined ? fromVariable(env, tokenEnv) : await fromFile(context, tokenFile)
  if (token !== undefined && !isBearerToken(token))
    throw new CommandError(
      EXIT.usage,
      'the token has a character that is not allowed in an HTTP header: paste the whole token, and nothing else.',
    )
  const web = targets.find(({ service }) => service === 'web')
  if (token !== undefined && web !== undefined && isExposed(web.url))
    context.stderr.write('platformctl: the token travels unencrypted to web: use its https:// address.\n')
  return token
}

function fromVariable(env: Context['env'], name: string | undefined): string | undefined {
  const value = env[name ?? DEFAULT_NAME]?.trim() || undefined
  // While it is rotated the variable holds two: the first is the one to send.
  const token = name === undefined || name === DEFAULT_NAME ? splitSecrets(value ?? '')[0] : value
  if (token === undefined && name !== undefined)
    throw new CommandError(EXIT.usage, `the variable ${name} that --token-env names is not set.`)
  return token
}

async function fromFile(context: Context, file: string): Promise<string> {
  const { readTextFile } = await import('../environment.ts')
  const token = (await readTextFile(context, file)).trim()
  if (token === '') throw new CommandError(EXIT.usage, `${file} holds no token: it is empty.`)
  return token
}

function isExposed(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
}
