import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { injectionOf } from './injections/index.ts'
import { DRAIN, RESTORE } from './injections/injection.ts'
import { CELLS, type When } from './product.ts'
import { DATA, ENV_FILE, openWorld, type Ran, type Running, type Told, until } from './world.ts'

/** `cell.ts CELL`, on a machine of its own (run.ts): makes the fault, follows it until it is closed, and prints a Result. */
export interface Result {
  readonly cell: string
  /** What is not as it must be; empty: the cell passed. */
  readonly wrong: readonly string[]
  readonly told?: { readonly by: string; readonly ms: number; readonly text: string }
  readonly closedMs?: number
  /** The printed commands that were run. */
  readonly printed: readonly string[]
  /** Everything that ran and was told, where something is wrong. */
  readonly record?: string
  /** What an operator has read of it before it was healed, if that was asked for. */
  readonly transcript?: string
}

const TOLD_MS = 120_000
/** The runbooks say: within four minutes. */
const CLOSED_MS = 250_000
/** The alert of a start that was refused ends once none was refused for ten minutes. */
const REFUSED_MS = 600_000
/** As long as a drain waits for a store that may come back, and some. */
const TYPED_MS = 200_000
/** A draw waits for no end beyond this. */
const LIMIT_MS = Number(process.env.DRILL_LIMIT_MS ?? Number.POSITIVE_INFINITY)
/** Each at most this long, although what they ask does not answer. */
const PRINTED_MS = 60_000

const cell = CELLS.find(({ name }) => name === process.argv[2])
if (cell === undefined) throw new Error(`no cell ${process.argv[2]}`)
const world = await openWorld()
const it = await injectionOf(cell, world)
const wrong: string[] = []
const printed: string[] = []
let told: Result['told']
let closedMs: number | undefined
let transcript: string | undefined
/** So many commands ran before the fault. */
let prepared = 0

const check = (holds: boolean, sentence: string) => {
  if (!holds) wrong.push(sentence)
  return holds
}
const startDaemon = () => world.daemon(it.daemon, it.daemonEnv)
const opened = () =>
  world.told.filter(({ type, by }) => type === 'incident.opened' && by === (it.by ?? 'webhook'))

/** The commands in a message or in what a command wrote, as they stand there. */
function commandsIn(text: string): string[] {
  const own = [...text.matchAll(/^(?:Start with|Runbook|Acknowledge): (platformctl .*)$/gm)].map(
    ([, line = '']) => line,
  )
  if (own.length > 0) return own
  const found = text.matchAll(
    /platformctl (?:preflight|status|health|runbook [a-z-]+|db (?:status|verify|migrate)|(?:course|mail|alert|email) (?:status|queue|list|lint|build))(?: --[a-z-]+(?: [^\s-][^\s;,)]*)?)*/g,
  )
  return [...new Set([...found].map(([line]) => line.replace(/[.:]$/, '')))]
}

/** Runs what is printed, and sees that the message or one of them names the cause. */
async function follow(text: string): Promise<void> {
  const done: Ran[] = []
  for (const line of commandsIn(text)) {
    const ran = await world.run(line)
    done.push(ran)
    printed.push(line)
    check(
      ran.ms < PRINTED_MS &&
        ![70, 127].includes(ran.code ?? 70) &&
        !/unknown (?:command|option)|missing required|too many arguments|there is no store at/.test(
          ran.output,
        ) &&
        // Refused as it was typed, unless that is the fault itself; an incident of the store's own is in no store, and
        // before the first start that succeeds no daemon has run with the folder.
        (ran.code !== 2 ||
          it.cause.test(ran.output) ||
          line.startsWith('platformctl alert ack store-') ||
          ran.output.includes('no daemon has started with the data folder')),
      `the printed command "${line}" does not run: ${ran.code} after ${Math.round(ran.ms / 1000)} s: ${ran.output.slice(-300)}`,
    )
  }
  // A channel that is slow has failed only once its time is over.
  const look = async () => {
    done.push(await world.run(it.look ?? ''))
    return it.cause.test(done.at(-1)?.output ?? '')
  }
  if (it.look !== undefined) await until(look, 40_000)
  const said = [text, ...done.map(({ output }) => output)]
  check(
    said.some((one) => it.cause.test(one)),
    `neither the message nor its commands name the cause (${it.cause}): ${text.slice(0, 600)}`,
  )
}

/** What an operator reads who knows nothing of the fault: messages, what was typed, and three commands of every day. */
async function transcribe(): Promise<void> {
  if (process.env.DRILL_TRANSCRIBES === undefined) return
  for (const command of [
    `platformctl status --env-file ${ENV_FILE} --data ${DATA}`,
    `platformctl health --deep --env-file ${ENV_FILE}`,
    `platformctl preflight --env-file ${ENV_FILE}`,
  ])
    await world.run(command)
  // Neither how a call is made to fail, nor what is done to make one end.
  const shown = (command: string) => command.slice(command.indexOf('platformctl '))
  transcript = [
    ...world.told.map(({ by, text }) => `A message by ${by}:\n\n${text}`),
    ...world.ran
      .slice(prepared)
      .filter(({ command }) => !command.startsWith('prlimit'))
      .map(({ command, code, output }) => `$ ${shown(command)}\n${output.slice(-12_000)}(exit code ${code})`),
  ].join('\n\n')
}

/** Waits until an alert or the end of the process tells it. */
async function hear(running: Running | undefined, began: number): Promise<'alert' | 'exit' | undefined> {
  const isHeard = () => opened().length > 0 || (running?.isOver() === true && it.witness !== true)
  check(await until(isHeard, TOLD_MS + (it.moreMs ?? 0)), 'nobody was told in time')
  const [first] = opened()
  if (first !== undefined) {
    told = { by: it.witness ? 'a witness' : first.by, ms: first.at - began, text: first.text }
    // Other alerts about the same fault follow a moment later, and later where everything is slow.
    await sleep(1000)
    const isNamed = () => opened().some((one) => it.cause.test(one.text))
    if (it.moreMs !== undefined) await until(isNamed, 60_000)
    await follow(
      opened()
        .map((one) => one.text)
        .join('\n'),
    )
    return 'alert'
  }
  if (running?.isOver() !== true) return undefined
  const { code, output } = await running.ended
  told = { by: `exit code ${code}`, ms: performance.now() - began, text: output.slice(-600) }
  check(code !== 0 && code !== null, `it ended with ${code}`)
  if (it.isKilled) check(code === 137, `it ended with ${code}`)
  else await follow(output)
  return 'exit'
}

/** Every incident that was told must end, on each channel that told it. */
async function closes(healedAt: number): Promise<void> {
  const isClosed = (one: Told) =>
    world.told.some(
      ({ type, by, incident }) => type === 'incident.closed' && by === one.by && incident === one.incident,
    )
  const isOver = () => world.told.filter(({ type }) => type === 'incident.opened').every(isClosed)
  const patienceMs = CLOSED_MS + (it.moreMs ?? 0) + (cell?.when === 'start' ? REFUSED_MS : 0)
  const leftMs = LIMIT_MS - performance.now()
  const areClosed = await until(isOver, Math.min(patienceMs, leftMs))
  if (!areClosed && leftMs < patienceMs) return
  check(areClosed, 'what was told was not closed in time')
  closedMs = performance.now() - healedAt
}

async function ask(began: number): Promise<void> {
  const { code, output } = await world.run(it.ask ?? '')
  told = { by: `exit code ${code} of ${it.ask}`, ms: performance.now() - began, text: output.slice(-600) }
  check(code !== 0, `"${it.ask}" ended with 0: ${output.slice(-300)}`)
  await follow(output)
  await transcribe()
  await it.heal()
  const healedAt = performance.now()
  const again = await world.run(`timeout 8 ${it.ask}`)
  check(
    again.code === 0 || again.code === 124,
    `healed, "${it.ask}" ended with ${again.code}: ${again.output.slice(-300)}`,
  )
  closedMs = performance.now() - healedAt
}

/** A witness takes a platform that it has never reached for a wrong address, not for one that is down. */
async function witnessed(): Promise<void> {
  const witness = world.begin(
    `exec platformctl witness --platform http://127.0.0.1:3000 --data /srv/home/witness --env-file ${ENV_FILE}`,
    { WITNESS_SECRET: 'the-secret-of-the-witness-of-the-drill' },
  )
  const hasReached = () => witness.output().includes('"event":"platform_reached"')
  check(await until(hasReached, 60_000), `the witness did not reach the platform: ${witness.output()}`)
}

/** The daemon meets the fault at its start, or while it runs. */
async function live(isRunning: boolean): Promise<void> {
  let running: Running | undefined
  if (isRunning) {
    running = await startDaemon()
    if (!check(!running.isOver(), `the daemon did not start: ${running.output().slice(-600)}`)) return
    await sleep(3000)
  }
  if (it.witness) await witnessed()
  let began = performance.now()
  if (it.isKilled && cell?.how === 'flapping') {
    // As a supervisor does, and the kernel again and again.
    for (let times = 0; times < 6; times += 1) {
      running ??= await startDaemon()
      await sleep(1000)
      await it.inject(running)
      await running.ended
      running = undefined
    }
    running = await startDaemon()
  } else if (it.isKilled && !isRunning) {
    running = world.begin(`exec platformctl daemon --data ${DATA} --env-file ${ENV_FILE}`)
    await sleep(250)
    await it.inject(running)
  } else {
    await it.inject(running)
    began = performance.now()
    running ??= await startDaemon()
  }
  if (it.ask !== undefined) return ask(began)
  // As visitors do; a request that hangs must not hold up the drill.
  if (!running.isOver()) void it.use?.()
  const heard = await hear(running, began)
  await transcribe()
  await it.heal()
  const healedAt = performance.now()
  if (running.isOver()) {
    const next = await startDaemon()
    check(!next.isOver(), `healed, the daemon did not start: ${next.output().slice(-600)}`)
  }
  if (heard !== undefined) await closes(healedAt)
}

const nextAttempts = () => {
  const file = `${DATA}/platform.sqlite`
  if (!existsSync(file)) return
  const database = new Database(file, { timeout: 5000 })
  // As if the time until the next attempt had passed.
  database.exec(
    'UPDATE subscription SET next_attempt_at = 1, lease_until = NULL WHERE next_attempt_at IS NOT NULL',
  )
  database.close()
}

/** A command that somebody watches: its exit code and its words tell. */
async function typed(when: When): Promise<void> {
  const command = () => it.command ?? (when === 'drain' ? DRAIN : RESTORE)
  const start = () => world.begin(`exec ${command()}`, it.commandEnv)
  const isLate = when === 'drain' && it.early !== true
  let running: Running | undefined
  if (isLate) world.mail.onTaken = async () => it.inject(running)
  else await it.inject(undefined)
  const began = performance.now()
  running = start()
  if (!(await until(() => running?.isOver() === true, TYPED_MS + (it.moreMs ?? 0)))) {
    check(false, `"${command()}" did not end in time`)
    running.child.kill('SIGKILL')
  }
  const { code, output } = await running.ended
  const isRidden = it.ridesOut === true && code === 0
  told = {
    by: isRidden ? 'nobody: it waited, and did all' : `exit code ${code}`,
    ms: performance.now() - began,
    text: output.slice(-600),
  }
  check(code !== 0 || isRidden, `"${command()}" ended with 0: ${output.slice(-300)}`)
  if (it.isKilled) check(code === 137, `it ended with ${code}`)
  else if (!isRidden) await follow(output)
  await transcribe()
  await it.heal()
  const healedAt = performance.now()
  if (when === 'drain') nextAttempts()
  // What a restore keeps is named by the second.
  else await sleep(1000)
  const again = await world.run(command(), it.commandEnv)
  check(again.code === 0, `healed, "${command()}" ended with ${again.code}: ${again.output.slice(-400)}`)
  if (existsSync(`${DATA}/platform.sqlite`)) {
    const sound = await world.run(`platformctl db verify --data ${DATA} --env-file ${ENV_FILE}`)
    check(sound.code === 0, `the store is not sound: ${sound.output.slice(-300)}`)
  }
  closedMs = performance.now() - healedAt
}

try {
  await it.prepare?.()
  prepared = world.ran.length
  if (it.alerts && cell.when === 'drain') {
    await live(true)
  } else if (cell.when === 'drain' || cell.when === 'restore') {
    if (it.ask === undefined) await typed(cell.when)
    else {
      await startDaemon()
      await it.inject(undefined)
      await ask(performance.now())
    }
  } else await live(cell.when === 'running')
} catch (error) {
  wrong.push(`the drill itself: ${error instanceof Error ? error.stack : error}`)
}
const record = [
  ...world.ran.map(({ command, code, output }) => `$ ${command} # ${code}\n${output.slice(-3000)}`),
  ...world.told.map(({ at, by, type, text }) => `${Math.round(at / 1000)} s ${by} ${type}\n${text}`),
  ...world.running().map((one) => one.output().slice(-6000)),
].join('\n')
const result: Result = {
  ...{ cell: cell.name, wrong, printed },
  ...(told && { told }),
  ...(closedMs !== undefined && { closedMs }),
  ...(wrong.length > 0 && { record }),
  ...(transcript !== undefined && { transcript }),
}
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
