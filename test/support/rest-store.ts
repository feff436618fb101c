import { serveBodies } from './servers.ts'

export const REST_TOKEN = 'a-rest-token-of-thirty-two-bytes-'

/** Answers one command of a store behind the REST protocol, or fails it. */
export type Command = (words: readonly string[]) => Promise<{ result: unknown } | { error: string }>

export interface RestStore {
  readonly url: string
  /** Commands that arrived, by name. */
  readonly commands: readonly string[]
  /** `slow` accepts and never answers; `broken` answers 500 with a page; `down` drops the connection. */
  become(state: 'well' | 'slow' | 'broken' | 'down'): void
}

/** The Upstash-compatible protocol: POST a command as a JSON array, with a bearer token. */
export async function restStore(command: Command): Promise<RestStore> {
  const commands: string[] = []
  let state: Parameters<RestStore['become']>[0] = 'well'
  const url = await serveBodies(async (body, response, request) => {
    const words = JSON.parse(body) as string[]
    commands.push(words[0] ?? '')
    if (state === 'slow') return
    if (state === 'down') return void request.socket.destroy()
    if (state === 'broken') return void response.writeHead(500).end('<h1>Bad gateway</h1>')
    if (request.headers.authorization !== `Bearer ${REST_TOKEN}`)
      return void response.writeHead(401).end(JSON.stringify({ error: 'Unauthorized' }))
    const answer = await command(words)
    response.writeHead('error' in answer ? 400 : 200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(answer))
  })
  return {
    url,
    commands,
    become: (next) => {
      state = next
    },
  }
}

/** A stand-in that keeps one number a key, as the script does; the real one is asked in test/servers. */
export function arrivalStore(now: () => number): Command {
  const arrivals = new Map<string, number>()
  let knowsScript = false
  return async ([name, , , key = '', each = '', burst = '']) => {
    if (name === 'PING') return { result: 'PONG' }
    if (name === 'EVALSHA' && !knowsScript) return { error: 'NOSCRIPT No matching script. Please use EVAL.' }
    knowsScript = true
    const from = Math.max(arrivals.get(key) ?? 0, now())
    const next = from + Number(each)
    const wait = next - Number(burst) - now()
    if (wait > 0) return { result: [0, 0, from - now(), wait] }
    arrivals.set(key, next)
    return { result: [1, Math.floor((Number(burst) - (next - now())) / Number(each)), next - now(), 0] }
  }
}
