import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { first, owned, stopped } from './child.ts'

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url))

export interface Server {
  readonly port: number
  readonly pid: number
  readonly close: () => Promise<void>
}

/** The web service of the built daemon, as it comes: with its log, its metrics and its store. */
export async function daemonServer(env: Readonly<Record<string, string>> = {}): Promise<Server> {
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-daemon-'))
  const child = owned(
    spawn(
      process.execPath,
      [
        file('../bin/platformctl.js'),
        'daemon',
        '--service',
        'web',
        '--web-port',
        '0',
        '--data',
        folder,
        '--no-schedule',
      ],
      {
        env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    ),
  )
  const listening = await firstLine(child, (line) => line.event === 'listening')
  return {
    port: Number(new URL(String(listening.web)).port),
    pid: child.pid ?? 0,
    async close() {
      await stopped(child)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Bare `node:http` with the headers and the body that `url` answers now. */
export async function bareServer(
  url: string,
  headersOfAsk: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const answer = await fetch(url, { headers: { Accept: 'application/json', ...headersOfAsk } })
  const headers = Object.fromEntries([...answer.headers].filter(([name]) => !HOP.has(name)))
  const child = owned(
    spawn(process.execPath, [file('./bare-http-sink.ts')], { stdio: ['pipe', 'pipe', 'inherit'] }),
  )
  child.stdin?.end(JSON.stringify({ headers, body: await answer.text() }))
  const { port } = await firstLine(child, () => true)
  return { port: Number(port), pid: child.pid ?? 0, close: () => stopped(child) }
}

/** Node writes these itself. */
const HOP: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'date'])

function firstLine(
  child: ChildProcess,
  wanted: (line: Record<string, unknown>) => boolean,
): Promise<Record<string, unknown>> {
  const said = new Promise<Record<string, unknown>>((resolve, reject) => {
    if (child.stdout === null) return reject(new Error('the server has no output'))
    // Goes on reading: a pipe that is full would hold the server up.
    createInterface({ input: child.stdout }).on('line', (line) => {
      const parsed = JSON.parse(line) as Record<string, unknown>
      if (wanted(parsed)) resolve(parsed)
    })
  })
  return first(child, said)
}
