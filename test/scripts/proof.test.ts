import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { type Part, partsOf } from '../../scripts/proof/parts.ts'
import { knownOf, prove } from '../../scripts/proof/prove.ts'
import { proven, report } from '../../scripts/proof/report.ts'
import { readResult } from '../../scripts/proof/results.ts'
import { emptyFolder } from '../support/folder.ts'

const ROOT = path.join(import.meta.dirname, '../..')
const surroundings = { date: '2026-11-21', commit: 'abc', machine: '2 cores', node: 'v24.0.0', scale: 1 }

/** A part that is a line of Node in the folder of the test, and leaves a mark each time it runs. */
function part(name: string, code: string, parts: Partial<Part> = {}): Part {
  return {
    name,
    shows: `What ${name} shows.`,
    command: [process.execPath, '-e', `require('fs').appendFileSync('ran', '${name} '); ${code}`],
    inputs: ['code'],
    figures: 1,
    ...parts,
  }
}

async function place() {
  const root = await emptyFolder()
  await mkdir(path.join(root, 'code'))
  await writeFile(path.join(root, 'code/one.ts'), 'one')
  const said: string[] = []
  const folder = path.join(root, '.proof')
  return {
    root,
    folder,
    said,
    ran: () => readFile(path.join(root, 'ran'), 'utf8').then((text) => text.trim().split(' ')),
    change: () => writeFile(path.join(root, 'code/one.ts'), 'two'),
    run: (parts: readonly Part[], more: Partial<Parameters<typeof prove>[0]> = {}) =>
      prove({
        parts,
        root,
        folder,
        fresh: false,
        commit: 'abc',
        limitMs: 60_000,
        signal: new AbortController().signal,
        say: (line) => said.push(line),
        ...more,
      }),
    reported: async (parts: readonly Part[]) => {
      const known = await knownOf(parts, root, folder)
      return { text: report(known, surroundings), proven: proven(known) }
    },
  }
}

const says = (...lines: string[]) => lines.map((line) => `console.log(${JSON.stringify(line)});`).join('')

test('skips a part that passed until its code changes or a fresh run is requested', async () => {
  const { run, ran, change, root, folder } = await place()
  const parts = [part('one', says('begins', '3 of 3 done')), part('two', '')]
  expect(await run(parts)).toBe('passed')
  expect(await run(parts)).toBe('passed')
  expect(await ran()).toEqual(['one', 'two'])
  expect(await readResult(folder, 'one')).toMatchObject({
    verdict: 'passed',
    lines: ['3 of 3 done'],
    commit: 'abc',
  })
  await change()
  expect((await knownOf(parts, root, folder)).map(({ stale }) => stale)).toEqual([true, true])
  expect(await run(parts)).toBe('passed')
  expect(await run(parts.slice(0, 1), { fresh: true })).toBe('passed')
  expect(await ran()).toEqual(['one', 'two', 'one', 'two', 'one'])
})

test('a benchmark is of the files that it reaches: mending another leaves its result', () => {
  const parts = partsOf({ root: ROOT, scale: 1, trial: '' })
  const inputs = (name: string) => parts.find((one) => one.name === name)?.inputs ?? []
  // By import, and to start it as a process.
  for (const file of ['drip.bench.ts', 'drip.ts', 'drip-sink.ts', 'child.ts', 'harness.ts'])
    expect(inputs('bench/drip')).toContain(`bench/${file}`)
  expect(inputs('bench/daemon-start')).toContain('bench/peers/fastify.mjs')
  expect(inputs('growth')).toContain('bench/memory-watch.ts')
  for (const other of ['bench/mail-http', 'bench/claim', 'growth'])
    expect(inputs(other)).not.toContain('bench/drip.ts')
  for (const { inputs } of parts) expect(inputs).toContain('src')
})

test('a part of another size is another proof', async () => {
  const { run, ran } = await place()
  await run([part('one', '1')])
  await run([part('one', '2')])
  expect(await ran()).toEqual(['one', 'one'])
})

test('a failing part does not stop the others, is reported with its last output, and runs again the next time', async () => {
  const { run, ran, reported } = await place()
  const parts = [
    part('bad', `${says('7 lost')} console.error('Error: it broke'); process.exitCode = 3`),
    part('good', says('all well')),
  ]
  expect(await run(parts)).toBe('failed')
  const { text, proven: all } = await reported(parts)
  expect(all).toBe(false)
  expect(text).toContain('- bad failed: it ended with 3; what it said last stands below.')
  expect(text).toContain('### bad: failed')
  expect(text).toMatch(/```text\n(?:7 lost\nError: it broke|Error: it broke\n7 lost)\n```/)
  expect(text).toContain('### good: passed')
  expect(text).toContain('| Parts | 1 of 2 passed, in')
  await run(parts)
  expect(await ran()).toEqual(['bad', 'good', 'bad'])
})

test.each<[what: string, code: string, reason: RegExp, parts?: Partial<Part>]>([
  [
    'changes its code while it runs',
    `require('fs').writeFileSync('code/one.ts', 'three')`,
    /^its code changed/,
  ],
  ['cannot be started', '', /ENOENT/, { command: ['no-such-program-anywhere'] }],
  ['exceeds its time limit', 'setInterval(() => {}, 1e3)', /did not end within/],
  ['is a benchmark without a result', '', /^it left no result in none\.json$/, { result: 'none.json' }],
])('a part that %s fails', async (_, code, reason, parts) => {
  const { run, folder } = await place()
  const limitMs = code.includes('setInterval') ? 300 : 60_000
  expect(await run([part('one', code, parts)], { limitMs })).toBe('failed')
  expect(await readResult(folder, 'one')).toMatchObject({ reason: expect.stringMatching(reason) })
})

test('stopping ends the running part with all that it started, and keeps what was done', async () => {
  const { run, root, folder, ran, said } = await place()
  const stopping = new AbortController()
  // The grandchild holds the output of the part open: if it were left, the part would not end.
  const forks = `require('child_process').spawn(process.execPath, ['-e', 'process.on("SIGINT", () => {}); console.log("ready"); setInterval(() => {}, 1e3)'], { stdio: 'inherit' }); setInterval(() => {}, 1e3)`
  const parts = [part('done', ''), part('long', forks), part('later', '')]
  const outcome = await run(parts, {
    signal: stopping.signal,
    say: (line) => {
      said.push(line)
      if (line === '    ready') stopping.abort()
    },
  })
  expect(outcome).toBe('stopped')
  expect(await ran()).toEqual(['done', 'long'])
  expect((await knownOf(parts, root, folder)).map(({ result }) => result?.verdict)).toEqual([
    'passed',
    undefined,
    undefined,
  ])
  expect(said.at(-1)).toContain('npm run proof goes on from here')
})

test('the temporary files of a part go with it, and all that it printed is kept in its log', async () => {
  const { run, folder } = await place()
  const code = `require('fs').writeFileSync(require('os').tmpdir() + '/left', ''); console.log(require('os').tmpdir()); console.log('end')`
  await run([part('group/one', code, { figures: 2 })])
  const lines = (await readResult(folder, 'group/one'))?.lines ?? []
  expect(lines).toHaveLength(2)
  expect(existsSync(lines[0] ?? '')).toBe(false)
  expect(await readFile(path.join(folder, 'group-one.log'), 'utf8')).toBe(`${lines.join('\n')}\n`)
})

test('an unreadable result counts as missing', async () => {
  const { run, ran, folder } = await place()
  await run([part('one', '')])
  await writeFile(path.join(folder, 'one.json'), '{"part":"one"')
  await run([part('one', '')])
  expect(await ran()).toEqual(['one', 'one'])
})

const measured = (ratio: object, bound?: object) => ({
  title: 'A figure',
  unit: 'ms',
  better: 'lower',
  series: [
    { name: 'ours', role: 'ours', median: 20, values: [20, 20, 20] },
    { name: 'the floor', role: 'floor', median: 10, values: [10, 10, 10] },
  ],
  ratios: [{ against: 'the floor', median: 2, low: 1.9, high: 2.1, tooWide: false, ...ratio }],
  ...(bound && { bound }),
})
const bench = (name: string, result: object) =>
  part(
    `bench/${name}`,
    `require('fs').writeFileSync('${name}.json', ${JSON.stringify(JSON.stringify(result))})`,
    { result: `${name}.json`, figures: 0 },
  )

test('the report counts the promises that are kept, and has a sentence for each that is not', async () => {
  const { run, reported } = await place()
  const parts = [
    bench('kept', measured({ promised: 2.5, kept: true }, { promised: 25, kept: true })),
    bench('broken', measured({ promised: 1.5, kept: false })),
    bench('free', measured({})),
  ]
  expect(await run(parts)).toBe('passed')
  const { text, proven: all } = await reported(parts)
  expect(text).toContain('- bench/broken: 2.00 (1.90 to 2.10) against the floor, where ≤ 1.5 was promised.')
  expect(text).toContain('| Promised figures | 2 of 3 kept |')
  expect(text).toContain('All ran.')
  expect(all).toBe(false)
})

test('a promised ratio whose spread is too wide fails its part, so that it is measured again', async () => {
  const { run, reported } = await place()
  const parts = [bench('wide', measured({ promised: 2.5, tooWide: true }))]
  expect(await run(parts)).toBe('failed')
  const { text } = await reported(parts)
  expect(text).toContain('- bench/wide failed: the spread beside the floor is too wide to quote')
  expect(text).toContain('| Promised figures | 0 of 1 kept |')
})

test('the report says in a sentence that all is proven, and lists parts that did not run', async () => {
  const { run, reported } = await place()
  const parts = [part('one', ''), part('two', '')]
  await run(parts.slice(0, 1))
  expect(await reported(parts)).toMatchObject({
    proven: false,
    text: expect.stringContaining('- two has not been run: `npm run proof -- --part two`.'),
  })
  await run(parts)
  expect(await reported(parts)).toMatchObject({
    proven: true,
    text: expect.stringContaining('Nothing: every part passed, and every promised figure was kept.'),
  })
})

test('the whole proof is 2,500 kills of dispatchers on each store and 500 around alerts, a million requests and every benchmark, of files that exist', async () => {
  const parts = partsOf({ root: ROOT, scale: 1, trial: '' })
  const commands = parts.map(({ command }) => command.join(' ')).join('\n')
  expect(commands.match(/--kills 1250/g)).toHaveLength(4)
  expect(commands.match(/torture:alerts -- --kills 500/g)).toHaveLength(2)
  expect(commands).toContain('--requests 1000000')
  expect(commands).toContain('--subscriber-days 1000000')
  expect(parts.map(({ name }) => name)).toContain('bench/drip')
  expect(new Set(parts.map(({ name }) => name)).size).toBe(parts.length)
  await expect(knownOf(parts, ROOT, await emptyFolder())).resolves.toHaveLength(parts.length)
})

test('a trial has the same parts but growth and profiles, smaller, and leaves the measured figures alone', () => {
  const [whole, trial] = [1, 0.001].map((scale) => partsOf({ root: ROOT, scale, trial: '.proof/trial' }))
  expect(trial?.map(({ name }) => name)).toEqual(
    whole?.map(({ name }) => name).filter((name) => name !== 'growth' && name !== 'where'),
  )
  expect(trial?.filter(({ result }) => result?.startsWith('bench/results'))).toEqual([])
})
