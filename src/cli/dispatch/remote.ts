import type { DispatchResult } from '../../core/course/course.ts'
import type { Environment } from '../../core/env/settings.ts'
import { ROUTES } from '../../core/routes.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../exit.ts'
import type { DispatchOptions, Source } from './source.ts'
import { post, webEndpoint } from './web-endpoint.ts'

/** A call sends up to 10,000 mails: it may take its time. */
const PATIENCE_MS = 15 * 60 * 1000

/** Dispatch through the endpoint of a running web service. */
export function remoteSource(context: Context, env: Environment, options: DispatchOptions): Source {
  const { url, secret } = webEndpoint(env, options.url, ROUTES.dispatch.path)
  if (options.limit !== undefined) url.searchParams.set('limit', String(options.limit))
  // One name for all calls of a drain: no subscription gets two lessons in it.
  if (options.drain) url.searchParams.set('run', Buffer.from(context.random.bytes(12)).toString('base64url'))
  return { call: () => call(context, url, secret), close: async () => {} }
}

async function call(context: Context, url: URL, secret: string): Promise<DispatchResult> {
  const response = await post({
    url,
    bearer: secret,
    signal: context.signal,
    patienceMs: PATIENCE_MS,
  }).catch((error: unknown) => {
    if (context.signal.aborted)
      throw new CommandError(
        EXIT.remote,
        'stopped before the service answered; the service goes on with this call and records it.',
      )
    throw new CommandError(
      EXIT.remote,
      error instanceof Error && error.name === 'TimeoutError'
        ? `${url.origin} did not answer within ${PATIENCE_MS / 60_000} minutes; the service goes on with this call and records it.`
        : `${url.origin} could not be reached: is the web service running, and is the address right?`,
      { cause: error },
    )
  })
  if (response.status === 401)
    throw new CommandError(
      EXIT.remote,
      'the service refused EMAIL_DISPATCH_SECRET: it must be the one that the service was started with.',
    )
  const { DispatchAnswer, ErrorAnswer } = await import('../../daemon/openapi/answers.ts')
  const body = parsed(response.text)
  // Loose: a newer service may say more.
  const answer = DispatchAnswer.loose().safeParse(body)
  if (response.status === 200 && answer.success) return answer.data
  const problem = ErrorAnswer.loose().safeParse(body)
  throw new CommandError(
    EXIT.remote,
    `the service answered ${response.status}${problem.success ? `: ${problem.data.message}` : ', and not as a dispatch endpoint'}`,
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
