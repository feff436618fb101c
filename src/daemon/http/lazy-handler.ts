import type { RouteHandler } from './route.ts'

/** A handler whose file is loaded with its first request: the schemas of all bodies cost a start more than the rest of it. */
export function lazyHandler(load: () => Promise<RouteHandler>): RouteHandler {
  let loading: Promise<RouteHandler> | undefined
  return async (asked) => {
    loading ??= load().catch((error: unknown) => {
      // The build may be being replaced right now, so let the next request try again.
      loading = undefined
      throw error
    })
    return (await loading)(asked)
  }
}
