import type { Handler } from './route.ts'

/** A handler whose file is loaded with its first request: the schemas of all bodies cost a start more than the rest of it. */
export function later(load: () => Promise<Handler>): Handler {
  let loading: Promise<Handler> | undefined
  return async (asked) => {
    loading ??= load()
    return (await loading)(asked)
  }
}
