import { execFileSync } from 'node:child_process'
import { existsSync, globSync, statSync } from 'node:fs'
import path from 'node:path'
import { type MutantOutcome, openHunt } from './mutants/hunt.ts'
import { isTooLow, percent } from './mutants/score.ts'
import { changedSources, type Planned, plannedOf, type Room, roomOf, shuffled } from './mutants/sources.ts'
import { optionsOf, refuse, wholeNumber } from './options.ts'

const USAGE = `npm run mutants -- ROOM … [--sample N] [--minutes M] [--seed S] [--fresh]
npm run mutants -- --changed [--since COMMIT] [--sample N] [--minutes M] [--each SECONDS]
  Plants small bugs into the sources of a room, one at a time, and runs the room's tests that import the file: a mutant
  that no test notices has survived. A room is a folder of src/core, or daemon, cli, platform; or a file in one.
  Exits with 3 when the score of 10 mutants or more is under its goal by more than chance explains: 85 % for course,
  store, mail, env, access and reporting, 75 % for the others, and for all that has changed. Sentences, and files of
  nothing but texts, are left as they are.
  --changed   the files that have changed since this branch left main, or in the last 20 commits of main
  --since     or since this commit
  --sample N  plants N of them in each room (or of all that has changed), drawn by --seed, instead of all
  --minutes M ends after that, with what it has
  --each S    judges a mutant by the tests nearest to it that take about so many seconds, and calls it undecided if
              there are others; without it, by all of them, or by 15 seconds of them with --changed
  --seed S    draws others; without it, the same ones for the same commit
  --fresh     runs again what has a result; otherwise one counts until the file or the room's tests change`

const TOO_LOW = 3
/** Seconds: the time of a gate is to be spent on many mutants, not on all the tests that miss one. */
const EACH_CHANGED = '15'

const { values, positionals } = optionsOf(USAGE, {
  allowPositionals: true,
  options: {
    changed: { type: 'boolean', default: false },
    since: { type: 'string' },
    sample: { type: 'string' },
    minutes: { type: 'string' },
    each: { type: 'string' },
    seed: { type: 'string' },
    fresh: { type: 'boolean', default: false },
  },
})
if (values.changed === positionals.length > 0) refuse(USAGE, 'Name a room, or --changed')
const most =
  values.sample === undefined ? Number.POSITIVE_INFINITY : wholeNumber(USAGE, '--sample', values.sample, 1)
const minutes =
  values.minutes === undefined ? Number.POSITIVE_INFINITY : wholeNumber(USAGE, '--minutes', values.minutes, 1)
const each = values.each ?? (values.changed ? EACH_CHANGED : undefined)
const eachMs = each === undefined ? Number.POSITIVE_INFINITY : wholeNumber(USAGE, '--each', each, 1) * 1_000
const until = Date.now() + minutes * 60_000
const seed = values.seed ?? execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim()

const drawn = values.changed ? inChanged() : positionals.flatMap(inRoom)
const hunt = openHunt({ rooms: roomsOf(drawn), fresh: values.fresh, until, eachMs })
const results: { readonly planned: Planned; readonly verdict: MutantOutcome }[] = []
for (const planned of drawn) {
  const verdict = Date.now() < until ? await hunt.judge(planned) : undefined
  if (verdict === undefined) break
  results.push({ planned, verdict })
  if (verdict !== 'noticed')
    console.log(
      `${verdict} ${planned.file}:${planned.line} ${planned.mutant.kind}\n  - ${short(planned.before)}\n  + ${short(planned.after)}`,
    )
  if (process.stderr.isTTY) process.stderr.write(`\r${results.length} of ${drawn.length}\r`)
}
await hunt.close()
report()

function inRoom(named: string): Planned[] {
  const place =
    [`src/core/${named}`, `src/${named}`, named.split(path.sep).join('/')].find((one) => existsSync(one)) ??
    refuse(USAGE, `There is no room ${named}`)
  const room = roomOf(place) ?? refuse(USAGE, `${place} is in none of the rooms`)
  const files = statSync(place).isDirectory() ? globSync(`${place}/**/*.ts`).sort() : [place]
  return shuffled(
    files.flatMap((file) => plannedOf(file, room)),
    seed,
  ).slice(0, most)
}

function inChanged(): Planned[] {
  const changed = changedSources(values.since)
  if (changed.since === undefined) {
    console.log(`No mutants: ${changed.why}`)
    process.exit(values.since === undefined ? 0 : 2)
  }
  const planned = changed.files.flatMap((file) => {
    const room = roomOf(file)
    return room === undefined ? [] : plannedOf(file, room)
  })
  if (planned.length === 0) {
    console.log(`No mutants: no source of a room has changed since ${changed.since}`)
    process.exit(0)
  }
  console.log(`${changed.files.length} files have changed since ${changed.since}`)
  return shuffled(planned, seed).slice(0, most)
}

function report(): void {
  const rooms = roomsOf(results.map(({ planned }) => planned))
  const lines: Pick<Room, 'name' | 'goal'>[] = [...rooms]
  if (values.changed) lines.push({ name: 'all that changed', goal: 75 })
  const width = Math.max(...lines.map(({ name }) => name.length))
  console.log('')
  for (const { name, goal } of lines) {
    const of = rooms.some((one) => one.name === name)
      ? results.filter(({ planned }) => planned.room.name === name)
      : results
    const [noticed, survived, undecided] = (['noticed', 'survived', 'undecided'] as const).map(
      (kind) => of.filter(({ verdict }) => verdict === kind).length,
    ) as [number, number, number] // One for each of the three.
    const score = { noticed, planted: noticed + survived }
    const judged = name === 'all that changed' || !values.changed
    const isUnder = judged && isTooLow({ noticed, survived, undecided, goal })
    if (isUnder) process.exitCode = TOO_LOW
    console.log(
      `${name.padEnd(width)}  ${noticed} of ${score.planted} noticed, ${percent(score).toFixed(1)} %${undecided > 0 ? `, ${undecided} undecided` : ''}${judged ? `; the goal is ${goal} %${isUnder ? ': TOO FEW' : ''}` : ''}`,
    )
  }
}

function roomsOf(planned: readonly Planned[]): Room[] {
  return [...new Map(planned.map(({ room }) => [room.name, room])).values()]
}

function short(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, 200)
}
