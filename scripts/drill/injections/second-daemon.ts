import { rmSync } from 'node:fs'
import Database from 'better-sqlite3'
import type { Cell } from '../product.ts'
import { DATA, type Running, until, type World } from '../world.ts'
import { CONFIG, DEFINITION, defined, definition } from './files.ts'
import { BACKUP, DRAIN, FILE, type Injection, RESTORE, STORE_OPTIONS, usePlatform } from './injection.ts'

export async function secondDaemon(cell: Cell, world: World): Promise<Injection> {
  const { how, when } = cell
  let other: Running | undefined
  const startOther = async (options: string, env: Record<string, string> = {}) => {
    other = world.begin(`exec platformctl daemon --data /srv/home/other ${options}`, env)
    await until(
      () => other?.isOver() === true || other?.output().includes('"event":"listening"') === true,
      60_000,
    )
  }
  const stopOther = async () => {
    other?.child.kill('SIGKILL')
    await other?.ended
  }
  const usual = defined(cell, world)
  const plain = {
    async prepare() {
      await world.seed(when === 'drain' ? 12 : 3)
      await world.must(`platformctl db backup ${BACKUP} ${STORE_OPTIONS}`)
    },
    early: true,
  }
  switch (how) {
    case 'slow': {
      let lock: Database.Database | undefined
      return {
        ...plain,
        cause: /another process|lock|is open/,
        use: usePlatform,
        inject() {
          lock = new Database(FILE, { timeout: 5000 })
          lock.exec('BEGIN EXCLUSIVE')
        },
        heal: () => lock?.close(),
      }
    }
    case 'lying':
      return {
        ...plain,
        async prepare() {
          await plain.prepare()
          world.settings.API_URL = 'http://127.0.0.1:8000'
        },
        cause: /b1.*b2|b2.*b1/s,
        daemon: '--service web --service agent',
        daemonEnv: { BUILD_STAMP: 'b1' },
        inject: () => startOther('--service api', { BUILD_STAMP: 'b2' }),
        // The api goes on, of the same build.
        async heal() {
          await stopOther()
          await startOther('--service api', { BUILD_STAMP: 'b1' })
        },
      }
    case 'wrong owner':
      return {
        ...plain,
        cause: /Kiln/,
        async prepare() {
          await plain.prepare()
          // The store gets its owner.
          const first = await world.daemon()
          first.child.kill('SIGTERM')
          await first.ended
          await world.must(`platformctl db backup /var/backups/own.sqlite.zst ${STORE_OPTIONS}`)
        },
        inject() {
          foreign = ` ${CONFIG}`
          definition()
        },
        heal() {
          foreign = ''
          rmSync(DEFINITION)
        },
        get daemon() {
          return foreign
        },
        get command() {
          return `${when === 'drain' ? DRAIN : RESTORE}${foreign}`
        },
        ...(when === 'running' && {
          ask: `platformctl daemon --data ${DATA} --web-port 0 --api-port 0 --agent-port 0 $([ -f ${DEFINITION} ] && echo "${CONFIG}" && exit; echo --help)`,
        }),
      }
    case 'wrong version': {
      const version = (by: number) => () => {
        const file = new Database(when === 'restore' ? NEWER : FILE)
        const now = Number(file.pragma('user_version', { simple: true }))
        file.pragma(`user_version = ${now + by}`)
        file.close()
      }
      const NEWER = '/var/backups/newer.sqlite'
      return {
        ...plain,
        cause: /newer/,
        async prepare() {
          await plain.prepare()
          await world.must(`platformctl db backup ${NEWER} ${STORE_OPTIONS}`)
        },
        inject: version(100),
        heal: version(-100),
        command: when === 'restore' ? RESTORE.replace(BACKUP, NEWER) : DRAIN,
        ...(when === 'running' && { ask: `platformctl dispatch --local --dry-run ${STORE_OPTIONS}` }),
      }
    }
    default:
      // Its ports are taken, or its folder is in use.
      return {
        ...usual,
        ...plain,
        cause:
          when === 'restore'
            ? /open in another process/
            : /port \d+ of \w+ (?:is in use|could not be taken)|a daemon runs here with/,
        daemon: '',
        command: RESTORE,
        ...(when === 'restore' || when === 'start'
          ? {
              inject: () => startOther(when === 'restore' ? `--data ${DATA}` : ''),
              heal: stopOther,
            }
          : {
              inject: (running) => {
                other = running
              },
              heal: stopOther,
              ask: `timeout 60 platformctl daemon --data /srv/home/other --no-schedule`,
            }),
      }
  }
}
let foreign = ''
