import { execFileSync } from 'node:child_process'
import { chownSync, rmSync, statfsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cell } from '../product.ts'
import { DATA, type Running, type World } from '../world.ts'
import {
  BACKUP,
  brokenCalls,
  DRAIN,
  flapping,
  type Injection,
  RESTORE,
  SERVICE,
  STORE_OPTIONS,
  usePlatform,
  type Ways,
  wayOf,
} from './injection.ts'

/** A disk of its own for the data folder. */
/** Smaller, and it would be nearly full from the beginning. */
const mountDisk = () => {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=300m,mode=755', 'tmpfs', DATA])
  chownSync(DATA, SERVICE, SERVICE)
}
const fillDisk = () => {
  const { bavail, bsize } = statfsSync(DATA)
  try {
    execFileSync('fallocate', ['--length', String(bavail * bsize), `${DATA}/filler`])
    execFileSync('dd', ['if=/dev/zero', `of=${DATA}/filler`, 'bs=4096', 'oflag=append', 'conv=notrunc'], {
      stdio: 'ignore',
    })
  } catch {}
}
const freeDisk = () => rmSync(`${DATA}/filler`, { force: true })

export function disk({ how, when }: Cell, world: World): Injection {
  const remount = (mode: string) => () => execFileSync('mount', ['-o', `remount,${mode}`, DATA])
  const calls = brokenCalls(
    how === 'slow'
      ? 'pwrite64,fsync,fdatasync:delay_enter=800000'
      : how === 'lying'
        ? 'fsync,fdatasync:error=EIO'
        : 'pwrite64,fsync,fdatasync:error=EIO',
  )
  let prefix = ''
  // From the first call on, or of a process that has its files open.
  const broken: Pick<Injection, 'inject' | 'heal'> = {
    inject(running) {
      if (running !== undefined) return calls.attach(running.pid)
      prefix = calls.prefix
      return undefined
    },
    async heal() {
      // What strace has begun stays slow until it ends.
      if (prefix !== '' && how === 'slow' && when === 'start') {
        execFileSync('pkill', ['-KILL', '-f', 'platformctl.* daemon '])
        await sleep(500)
      }
      prefix = ''
      await calls.detach()
    },
  }
  const isOpen = when === 'running' || when === 'drain'
  const hows: Ways = {
    gone: isOpen
      ? { cause: /disk/, ...broken }
      : { cause: /read-only|takes no writes|cannot be written/, inject: remount('ro'), heal: remount('rw') },
    slow: { cause: /disk of the data folder is slow/, moreMs: 120_000, ...broken },
    full: { cause: /full|room/, inject: fillDisk, heal: freeDisk },
    lying: { cause: /disk/, ...broken },
    flapping: { cause: /full|room/, ...flapping(fillDisk, freeDisk) },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      mountDisk()
      await world.seed(when === 'drain' ? 12 : 3)
      if (when === 'restore') await world.must(`platformctl db backup ${BACKUP} ${STORE_OPTIONS}`)
    },
    // Each request would hold up the process for longer.
    ...(how !== 'slow' && { use: usePlatform }),
    ridesOut: how === 'flapping' && when === 'drain',
    get daemonEnv() {
      return { PREFIX: prefix }
    },
    get command() {
      return `${prefix} ${when === 'drain' ? DRAIN : RESTORE}`
    },
  }
}

export function memory({ how, when }: Cell, world: World): Injection {
  let last: Running | undefined
  let prefix = ''
  const kill = (running: Running | undefined) => {
    last = running
    running?.child.kill('SIGKILL')
    // In the middle of it, which is too soon over for a signal from outside.
    if (when === 'restore')
      prefix = `strace -f -o /dev/null -e trace=fsync -e inject=fsync:signal=KILL:when=${how === 'gone' ? 1 : 3}`
  }
  const heal = () => {
    prefix = ''
  }
  let heap = ''
  const small: Pick<Injection, 'inject' | 'heal'> = {
    inject(running) {
      if (running === undefined || when !== 'running') heap = '--max-old-space-size=8'
      // What it has it keeps; it gets no more.
      // A process may take less for one of its own user without a right for that.
      else return world.must(`prlimit --pid ${running.pid} --as=200000000`)
      return undefined
    },
    heal() {
      heap = ''
    },
  }
  const hows: Ways = {
    gone: { cause: /unreachable|137|ended without/, inject: kill, heal },
    full: { cause: /memory|unreachable|ended without|allocation/i, ...small },
    flapping: { cause: /started \d+ times|137|ended without/, inject: kill, heal },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      world.settings.WITNESS_SECRET = 'the-secret-of-the-witness-of-the-drill'
      await world.seed(when === 'drain' ? 12 : 3)
      if (when === 'restore') await world.must(`platformctl db backup ${BACKUP} ${STORE_OPTIONS}`)
    },
    use: () => (last === undefined ? usePlatform() : undefined),
    witness: how !== 'flapping' && when === 'running',
    // So long ago must the last start be.
    ...(how === 'flapping' && { moreMs: 950_000 }),
    isKilled: how !== 'full',
    early: how === 'full',
    get command() {
      return `${prefix} ${when === 'drain' ? DRAIN : RESTORE}`
    },
    get daemonEnv() {
      return heap === '' ? {} : { NODE_OPTIONS: heap }
    },
    get commandEnv() {
      return heap === '' ? {} : { NODE_OPTIONS: heap }
    },
  }
}
