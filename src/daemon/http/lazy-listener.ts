import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from '../../core/once.ts'
import { rawErrorResponse } from './raw-problem.ts'

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<unknown>

/**
 * A listener that is loaded with its first request. One that cannot be loaded, as in the middle of a replaced build,
 * costs that request a 503 and not the process: the next request tries again.
 */
export function lazyListener(load: () => Promise<Listener>): Listener {
  let listener: Listener | undefined
  const loaded = once(async () => {
    listener = await load()
    return listener
  })
  return async (incoming, outgoing) => {
    const known = listener ?? (await loaded().catch(() => undefined))
    if (known) await known(incoming, outgoing)
    else {
      const { status, headers, body } = rawErrorResponse('unavailable', {
        accept: incoming.headers.accept ?? '',
      })
      outgoing.writeHead(status, { ...headers, Connection: 'close' }).end(body)
    }
  }
}
