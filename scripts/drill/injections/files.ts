import { chmodSync, chownSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import type { Cell } from '../product.ts'
import { DATA, HOME, type World } from '../world.ts'
import {
  BACKUP,
  DRAIN,
  FILE,
  flapping,
  type Injection,
  RESTORE,
  SERVICE,
  STORE_OPTIONS,
  type Ways,
  wayOf,
} from './injection.ts'

const JOURNAL = `${DATA}/platform-journal.jsonl`

export function fileOwner({ how, when }: Cell, world: World): Injection {
  const give = (files: readonly string[], owner: number, mode: number) => {
    for (const file of files) {
      if (!existsSync(file)) continue
      chownSync(file, owner, owner)
      chmodSync(file, mode)
    }
  }
  const storeFiles = [FILE, `${FILE}-wal`, `${FILE}-shm`]
  const way = (files: readonly string[], mode: number): Pick<Injection, 'inject' | 'heal'> => ({
    inject: () => give(files, 0, mode),
    heal: () => give(files, SERVICE, files.includes(DATA) ? 0o755 : 0o600),
  })
  const cause = /belongs? to|owner|may not|permission|cannot be (?:written|read|opened)|not allowed|rights/
  const folder = way([DATA], 0o700)
  const hows: Ways = {
    gone: { cause, ...folder },
    'wrong owner': { cause, ...way(storeFiles, 0o600) },
    lying: { cause: /journal/, ...way([JOURNAL], 0o600) },
    flapping: { cause, ...flapping(() => folder.inject(undefined), folder.heal) },
  }
  return {
    ...wayOf(hows, how),
    async prepare() {
      await world.seed(when === 'drain' ? 12 : 3)
      await world.must(`platformctl db migrate ${STORE_OPTIONS}`)
      await world.must(`platformctl db backup ${BACKUP} ${STORE_OPTIONS}`)
    },
    early: true,
    ...(when === 'running' && how === 'wrong owner' && { ask: `platformctl db status ${STORE_OPTIONS}` }),
    ...(when === 'drain' && how === 'lying' && { ask: `platformctl db verify ${STORE_OPTIONS}` }),
  }
}

export const definition = (more: object = {}) => {
  writeFileSync(DEFINITION, JSON.stringify({ preset: 'learning', name: 'Kiln', ...more }))
  chownSync(DEFINITION, SERVICE, SERVICE)
}
export const DEFINITION = `${HOME}/platform.config.json`
export const CONFIG = `--config ${DEFINITION}`

/** What a definition, or another one, is needed for. */
export const defined = ({ when }: Cell, world: World) => ({
  async prepare() {
    definition()
    await world.seed(when === 'drain' ? 12 : 3)
    if (when === 'restore') await world.must(`platformctl db backup ${BACKUP} ${STORE_OPTIONS} ${CONFIG}`)
  },
  daemon: CONFIG,
  command: `${when === 'drain' ? DRAIN : RESTORE} ${CONFIG}`,
  early: true,
})

export function definitions(cell: Cell, world: World): Injection {
  const unreadable = (owner: number, mode: number) => () => {
    chownSync(DEFINITION, owner, owner)
    chmodSync(DEFINITION, mode)
  }
  const hows: Ways = {
    gone: {
      cause: /platform\.config\.json.*(?:no such|not (?:there|found)|exist|missing)|no such file/,
      inject: () => rmSync(DEFINITION),
      heal: () => definition(),
    },
    lying: {
      cause: /probes\.ledger/,
      inject: () => definition({ probes: { ledger: { service: 'web', http: 7 } } }),
      heal: () => definition(),
    },
    'wrong owner': {
      cause: /platform\.config\.json/,
      inject: unreadable(0, 0o600),
      heal: unreadable(SERVICE, 0o644),
    },
    'wrong version': {
      cause: /prospects/,
      inject: () => definition({ prospects: { all: 'of a later version' } }),
      heal: () => definition(),
    },
  }
  return {
    ...wayOf(hows, cell.how),
    ...defined(cell, world),
    ...(cell.when === 'running' && { ask: `platformctl status ${STORE_OPTIONS}` }),
  }
}

export function templates(cell: Cell, world: World): Injection {
  const MAILS = `${HOME}/mails`
  const WELCOME = `${MAILS}/welcome.md`
  const write = (more = '', body = 'Welcome.') => {
    mkdirSync(MAILS, { recursive: true })
    writeFileSync(
      WELCOME,
      `---\nsubject: Welcome\n${more}action: { label: Open, url: "{{startUrl}}" }\nslots: { startUrl: { type: url, sample: https://www.example.com } }\n---\n\n${body}\n`,
    )
    for (const file of [MAILS, WELCOME]) chownSync(file, SERVICE, SERVICE)
    chmodSync(WELCOME, 0o644)
  }
  const hows: Ways = {
    gone: {
      cause: /mails/,
      inject: () => rmSync(MAILS, { recursive: true }),
      heal: () => write(),
    },
    lying: { cause: /welcome\.md/, inject: () => write('', 'Welcome, {{nobody}}.'), heal: () => write() },
    'wrong owner': {
      cause: /welcome\.md/,
      inject() {
        chownSync(WELCOME, 0, 0)
        chmodSync(WELCOME, 0o600)
      },
      heal: () => write(),
    },
    'wrong version': {
      cause: /welcome\.md/,
      inject: () => write('prospects: all\n'),
      heal: () => write(),
    },
  }
  const usual = defined(cell, world)
  return {
    ...wayOf(hows, cell.how),
    ...usual,
    async prepare() {
      await usual.prepare()
      write()
      definition({ mails: './mails' })
    },
  }
}
