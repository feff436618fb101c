import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cell } from '../product.ts'
import { DATA, HOME, type Running, type World } from '../world.ts'

/** How a cell's fault is made, what must be said of it, and how it ends. */
export interface Injection {
  /** What the message, or a command that it prints, must say. */
  readonly cause: RegExp
  /** Before anything runs; not part of the fault. */
  readonly prepare?: () => unknown
  readonly inject: (running: Running | undefined) => unknown
  readonly heal: () => unknown
  /** Makes use of what is broken, as visitors would. */
  readonly use?: () => unknown
  /** How the daemon, and a drain or a restore, are started. */
  readonly daemon?: string
  readonly daemonEnv?: Record<string, string>
  readonly command?: string
  readonly commandEnv?: Record<string, string>
  /** A command that tells it, where the daemon itself meets nothing. */
  readonly ask?: string
  /** Somebody outside tells it: the process itself is gone. */
  readonly witness?: boolean
  /** What the runbook says to look at, too. */
  readonly look?: string
  /** The channel that is left. */
  readonly by?: 'mail'
  /** The fault is there when the drain begins. */
  readonly early?: boolean
  /** The daemon's alert tells it, also during a drain. */
  readonly alerts?: boolean
  /** It may wait until it works again, and then do all that it was asked to. */
  readonly ridesOut?: boolean
  /** Nothing but its end tells that a process was killed. */
  readonly isKilled?: boolean
  /** Beyond what most cells take, in milliseconds. */
  readonly moreMs?: number
}

export const FILE = `${DATA}/platform.sqlite`
export const STORE_OPTIONS = `--data ${DATA} --env-file ${HOME}/.env`
export const DRAIN = `platformctl dispatch --local --drain ${STORE_OPTIONS}`
export const BACKUP = '/var/backups/b.sqlite.zst'
export const RESTORE = `platformctl db restore ${BACKUP} --force ${STORE_OPTIONS}`
export const SERVICE = 65_534

/** Down for most of the time, and up for a moment now and then. */
export function flapping(down: () => unknown, up: () => unknown) {
  let over = false
  let cycle: Promise<void> | undefined
  return {
    moreMs: 200_000,
    inject() {
      cycle = (async () => {
        while (!over) {
          await down()
          for (let left = 700; left > 0 && !over; left -= 1) await sleep(100)
          await up()
          for (let left = 100; left > 0 && !over; left -= 1) await sleep(100)
        }
      })()
      return sleep(500)
    },
    async heal() {
      over = true
      await cycle
      await up()
    },
  }
}

/** Calls of a process that fail or come late, as strace injects them. */
export function brokenCalls(what: string) {
  let strace: ReturnType<typeof spawn> | undefined
  let ended: Promise<unknown> | undefined
  const calls = what.slice(0, what.indexOf(':'))
  return {
    prefix: `strace -f -o /dev/null -e trace=${calls} -e inject=${what}`,
    async attach(pid: number) {
      strace = spawn(
        'strace',
        ['-f', '-o', '/dev/null', '-p', String(pid), '-e', `trace=${calls}`, '-e', `inject=${what}`],
        { stdio: ['ignore', 'ignore', 'pipe'] },
      )
      ended = new Promise((resolve) => strace?.on('close', resolve))
      await Promise.race([ended, new Promise<void>((resolve) => strace?.stderr?.on('data', () => resolve()))])
    },
    async detach() {
      strace?.kill('SIGINT')
      await ended
    },
  }
}

export const usePlatform = async (count = 14) => {
  for (let index = 0; index < count; index += 1)
    await fetch('http://127.0.0.1:3000/api/email/subscribe', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: `visitor${index}@example.com` }),
    }).catch(() => {})
}

/** Another server that the daemon probes at this address. */
export function probed(world: World, address: string): void {
  world.settings.NEXT_PUBLIC_DATASTORE_URL = address
  world.settings.NEXT_PUBLIC_DATASTORE_ANON_KEY = 'kX3vQ8tR2mZ7pL5wkX3vQ8tR2mZ7pL5w'
}

export type Ways = Partial<Record<Cell['how'], Pick<Injection, 'cause' | 'inject' | 'heal' | 'moreMs'>>>

export function wayOf(ways: Ways, how: Cell['how']) {
  const way = ways[how]
  if (way === undefined) throw new Error(`nothing injects "${how}"`)
  return way
}
