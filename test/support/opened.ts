import path from 'node:path'
import { onTestFinished } from 'vitest'
import type { Log, LogFields } from '../../src/core/host.ts'
import type { Handler, OpenOptions } from '../../src/daemon/embedding.ts'
import { emptyFolder } from './folder.ts'
import { openLearning } from './learning.ts'

type Services = Readonly<Record<'web' | 'api' | 'agent', Handler>>

export interface Asking extends RequestInit {
  readonly headers?: Record<string, string>
  readonly service?: keyof Services
  /** The address of its socket; without one the handler is called as an embedding program calls it. */
  readonly from?: string
  readonly rawHeaders?: readonly string[]
}

/** Requests to the services of a platform. */
export function asking(platform: Services) {
  const ask = (target: string, { service = 'web', from, rawHeaders = [], ...init }: Asking = {}) =>
    platform[service].fetch(
      new Request(`http://${service}.example${target}`, init),
      from && { incoming: { rawHeaders, socket: { remoteAddress: from } } },
    )
  const post = (target: string, body: unknown, headers: Record<string, string> = {}, from?: string) =>
    ask(target, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(from && { from }),
    })
  const page = async (target: string, asked: Asking = {}) =>
    (await ask(target, { ...asked, headers: { Accept: 'text/html', ...asked.headers } })).text()
  return { ask, post, page }
}

/** A log that keeps its lines. */
export function keptLog() {
  const lines: (LogFields & { readonly level: string; readonly event: string })[] = []
  const at =
    (level: string): Log['info'] =>
    (event, message, fields) =>
      void lines.push({ ...fields, level, event, message })
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { log, lines, told: (event: string) => lines.filter((line) => line.event === event) }
}

/** The default platform, in an empty environment unless the options say otherwise; closed with the test. */
export function opened(options: Partial<Omit<OpenOptions, 'platform'>> = {}) {
  const kept = keptLog()
  const platform = openLearning({ env: {}, log: kept.log, ...options })
  onTestFinished(() => platform.close())
  return { platform, ...kept, ...asking(platform) }
}

/** The address of a store in a file of its own, which is not there yet. */
export const newStoreUrl = async () => `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}`
