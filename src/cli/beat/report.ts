import { ROUTES } from '../../core/routes.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../exit.ts'

export interface BeatOptions {
  readonly url?: string
  readonly local?: true
  readonly data?: string
  readonly envFile: readonly string[]
}

/** Reports a heartbeat to the web service, or writes it into this machine's store; gives when the next one is due. */
export async function reportBeat(
  context: Context,
  { name, exitCode, ...options }: BeatOptions & { readonly name: string; readonly exitCode: number },
): Promise<{ readonly nextBy: string }> {
  const { loadEnvironment } = await import('../environment.ts')
  const { env } = await loadEnvironment(context, options.envFile)
  if (!options.local) {
    const { postToWeb, webEndpoint } = await import('../dispatch/web-endpoint.ts')
    const path = ROUTES.heartbeat.path.replace(':name', encodeURIComponent(name))
    const answer = await postToWeb(context, { ...webEndpoint(env, options.url, path), body: { exitCode } })
    return { nextBy: String(answer.nextBy) }
  }
  const definition = context.platform.heartbeats.find((one) => one.name === name)
  if (definition === undefined) {
    const known = context.platform.heartbeats.map((one) => one.name).join(', ')
    throw new CommandError(
      EXIT.usage,
      `the definition has no heartbeat ${JSON.stringify(name)}${known === '' ? ', nor any other: run this where platform.config.ts is, or name the file with --config' : `; it has ${known}`}.`,
    )
  }
  const { openLocalStore } = await import('../local.ts')
  const { heartbeatState } = await import('../../core/heartbeats.ts')
  const store = await openLocalStore(context, env, options.data)
  try {
    const now = context.clock.now()
    const failed = exitCode === 0 ? undefined : { exitCode }
    const record = await store.heartbeats.beat({ name, now, failed })
    return { nextBy: new Date(heartbeatState(definition, record, now).dueBy).toISOString() }
  } finally {
    await store.close()
  }
}
