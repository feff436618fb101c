import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ALERT_FAULTS } from './drill/alerts.ts'
import type { Result } from './drill/cell.ts'
import { FAULTS } from './drill/faults.ts'
import { MOST_FIXES, MOST_LOOKS } from './drill/machine.ts'
import { CELLS, type Cell, draw, IN_SCOPE } from './drill/product.ts'
import { canIsolate, runCells } from './drill/run.ts'
import { optionsOf, refuse, wholeNumber } from './options.ts'
import { runSteps } from './runbooks/session.ts'

const USAGE = `npm run drill [-- OPTIONS] [-- NAME …]
  Makes each fault of a list on an empty machine, follows it from the alert to "closed" with the commands that an operator
  would type, and counts them; beside it, cells that a seed draws from component × how it fails × when. Somebody must be
  told of a cell's fault in time and by its cause, the printed commands must run, and it must close. NAME: only the faults
  of the list with that in their name.
  --seed N         draws the cells of that seed
  --cells N        draws N cells (default: 12)
  --cell NAME      only these cells: store/slow/running, store/slow, store; may be given again
  --all            every cell that is in scope
  --at-once N      how many run beside each other
  --transcripts FOLDER
                   draws among all cells in scope, whatever they take, and writes into a file each, 01.txt and so on, what
                   an operator reads who does not know the fault: somebody else can then name it
  --list           prints every cell, and why it is out of scope if it is`
/** What the cells of a draw may take. What an alert says last is waited for no longer. */
const DRAW_MS = 190_000

const { values: options, positionals: wanted } = optionsOf(USAGE, {
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    cells: { type: 'string', default: '12' },
    cell: { type: 'string', multiple: true, default: [] },
    all: { type: 'boolean', default: false },
    transcripts: { type: 'string' },
    'at-once': { type: 'string', default: '12' },
    list: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const seed = wholeNumber(USAGE, '--seed', options.seed)
const count = wholeNumber(USAGE, '--cells', options.cells)
const atOnce = wholeNumber(USAGE, '--at-once', options['at-once'], 1)
let failed = 0

if (options.list) {
  for (const { name, reason } of CELLS) console.log(reason === undefined ? name : `${name}: not, ${reason}`)
  console.log(`${CELLS.length} cells, ${IN_SCOPE.length} in scope`)
} else if (options.all || options.cell.length > 0) await runNamed()
else if (options.transcripts !== undefined) await runBlind(options.transcripts)
else if (wanted.length > 0) await runList()
else await Promise.all([runList(), runDrawn()])
process.exitCode = failed === 0 ? 0 : 1

async function runNamed(): Promise<void> {
  const isNamed = (name: string) =>
    options.all || options.cell.some((one) => name === one || name.startsWith(`${one}/`))
  const cells = IN_SCOPE.filter(({ name }) => isNamed(name))
  if (cells.length === 0) refuse(USAGE, `no cell in scope is named ${options.cell.join(', ')}`)
  await follow(cells)
}

async function runDrawn(): Promise<void> {
  console.log(`cells of --seed ${seed}`)
  const isShort = ({ component, how, when }: Cell) =>
    when === 'restore' ||
    // A mail server that is silent may answer for ten minutes.
    (when === 'drain' ? `${component}/${how}` !== 'mail/slow' : how !== 'flapping')
  const cells = draw(seed, count, IN_SCOPE.filter(isShort))
  if (count > 0 && !(await canIsolate()))
    return console.log('SKIPPED: this machine lets no process have a network and mounts of its own')
  const failedOnce = new Set<string>()
  const onResult = ({ cell, wrong }: Result) => wrong.length > 0 && failedOnce.add(cell)
  await follow(cells, { limitMs: DRAW_MS }, onResult)
  // On a busy machine a bound can pass for no fault of the product, so a second run decides.
  failed -= failedOnce.size
  if (failedOnce.size > 0) await follow(cells.filter(({ name }) => failedOnce.has(name)))
}

async function runBlind(folder: string): Promise<void> {
  console.log(`cells of --seed ${seed}`)
  const cells = draw(seed, count)
  mkdirSync(folder, { recursive: true })
  await follow(cells, { transcribes: true }, ({ cell, transcript = '' }) => {
    const number = String(cells.findIndex(({ name }) => name === cell) + 1).padStart(2, '0')
    writeFileSync(path.join(folder, `${number}.txt`), transcript)
    console.log(`${number}.txt is of ${cell}`)
  })
}

async function follow(
  cells: readonly Cell[],
  more: { readonly limitMs?: number; readonly transcribes?: boolean } = {},
  onResult: (result: Result) => unknown = () => {},
): Promise<void> {
  let passed = 0
  await runCells(cells, { atOnce, ...more }, (result) => {
    onResult(result)
    if (result.wrong.length === 0) passed += 1
    console.log(lineOf(result))
  })
  failed += cells.length - passed
  console.log(`${passed} of ${cells.length} cells were told, by their cause, and closed`)
}

function lineOf({ cell, wrong, told, closedMs, printed, record }: Result): string {
  const seconds = (ms: number) => `${Math.round(ms / 1000)} s`
  const said = [
    told && `told after ${seconds(told.ms)} by ${told.by}`,
    printed.length > 0 && `${printed.length} printed commands`,
    closedMs === undefined ? 'its end was not waited for' : `closed after ${seconds(closedMs)}`,
  ]
  return [
    `${wrong.length === 0 ? '✓' : '✗'} ${cell}: ${said.filter(Boolean).join(', ')}`,
    ...wrong.map((one) => one.trim().replace(/^/gm, '    ')),
    ...(record === undefined ? [] : [`    all that ran: ${kept(cell, record)}`]),
    ...(wrong.length > 0 ? [`    again with: npm run drill -- --cell '${cell}'`] : []),
  ].join('\n')
}

function kept(cell: string, record: string): string {
  const file = path.join(tmpdir(), `platformctl-drill-${cell.replace(/\W+/g, '-')}.txt`)
  writeFileSync(file, record, { mode: 0o600 })
  return file
}

async function runList(): Promise<void> {
  let open = 0
  for (const { name, page, make, look, fix, closed } of [...FAULTS, ...ALERT_FAULTS]) {
    if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue
    const said = [...look, ...fix, closed]
    const steps = said.map(({ command }, index) => ({ line: index + 1, command, output: [], exitCode: 0 }))
    // Ends the processes that the fault started. Their ids are in files, because they outlive the shell that made them.
    const end = {
      line: 0,
      command: 'for file in pid api.pid; do [ -f $file ] && kill -9 $(cat $file); done; true',
      output: [],
      exitCode: 0,
    }
    // Making a fault may well fail: that is its point.
    const done = await runSteps([...steps, end], `${make}\ntrue`)
    const wrong = said.flatMap(({ command, says }, index) => {
      const text = done[index]?.output.join('\n') ?? ''
      return says === undefined || says.test(text)
        ? []
        : [`  $ ${command}\n${text.replace(/^/gm, '    ')}\n  expected ${says}`]
    })
    const short = look.length <= MOST_LOOKS && fix.length <= MOST_FIXES
    const passed = wrong.length === 0 && short
    if (!passed) open += 1
    console.log(
      `${passed ? '✓' : '✗'} ${name}: ${look.length} to the cause, ${fix.length} to the fix (runbooks/${page})${wrong.length > 0 ? `\n${wrong.join('\n')}` : ''}`,
    )
  }
  failed += open
  console.log(open === 0 ? 'every fault was found and closed' : `${open} faults were not`)
}
