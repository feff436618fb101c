import { expect, test } from 'vitest'
import { type Benchmark, type Contender, runBenchmark } from '../../bench/harness.ts'
import { measurements, page, told } from '../../bench/report.ts'

const surroundings = { date: '2026-11-21T00:00:00.000Z', machine: { node: 'v24.0.0', cores: 2, load: 0 } }

/** Measures what is listed, one a round; the first is the warm-up. */
function contender(name: string, role: Contender['role'], values: readonly number[]): Contender {
  let at = 0
  return { name, role, measure: async () => values[at++] ?? Number.NaN }
}

function benchmark(parts: Partial<Benchmark>, ours: readonly number[], floor: readonly number[]): Benchmark {
  return {
    name: 'figure',
    title: 'A figure',
    unit: 'ms',
    better: 'lower',
    promises: [{ against: 'the floor', ratio: 2 }],
    rounds: ours.length - 1,
    open: async () => ({
      contenders: [contender('ours', 'ours', ours), contender('the floor', 'floor', floor)],
    }),
    ...parts,
  }
}

const run = (one: Benchmark, trial = false) => runBenchmark(one, surroundings, () => {}, trial)

test('a ratio is the median of the ratios round by round, and the warm-up counts for nothing', async () => {
  const { ratios, series } = await run(benchmark({}, [100, 10, 11, 12], [1, 10, 10, 10]))
  expect(series[0]?.values).toEqual([10, 11, 12])
  expect(ratios[0]).toMatchObject({
    against: 'the floor',
    median: 1.1,
    promised: 2,
    kept: true,
    tooWide: false,
  })
})

test('with too wide a spread, neither a median nor a verdict is given', async () => {
  const result = await run(benchmark({}, [0, 10, 20, 30, 40], [0, 10, 10, 10, 10]))
  expect(result.ratios[0]).toMatchObject({ tooWide: true, kept: undefined })
  expect(told(result)).toEqual([
    'ours: 17.5 to 32.5 ms',
    'the floor: 10.0 ms',
    'ours / the floor: spread too wide to quote · promised ≤ 2',
  ])
  expect(page([result])).toContain(
    '| A figure | 17.5 to 32.5 ms | the floor | spread too wide to quote | ≤ 2 |',
  )
})

test.each([
  ['lower', 50, [0, 40, 45, 49], 'kept'],
  ['lower', 50, [0, 51, 52, 53], 'not kept'],
  ['higher', 50, [0, 51, 52, 53], 'kept'],
  ['lower', 50, [0, 10, 40, 200], 'spread too wide to say'],
  ['lower', 50, [0, 5, 10, 20], 'kept'],
] as const)('better %s, promised %d, measured %j: %s', async (better, bound, values, verdict) => {
  const result = await run(benchmark({ better, bound, promises: [] }, values, values))
  expect(told(result)).toContain(
    `promised ${better === 'lower' ? '≤' : '≥'} ${bound.toPrecision(3)} ms: ${verdict}`,
  )
})

test('a trial is one round without a warm-up', async () => {
  const { series, rounds } = await run(benchmark({}, [7, 8, 9], [1, 1, 1]), true)
  expect(rounds).toBe(1)
  expect(series[0]?.values).toEqual([7])
})

test('a failed open closes the resources opened so far, newest first, and reports its own error', async () => {
  const closed: string[] = []
  const one = benchmark(
    {
      open: async (opened) => {
        opened.defer(() => void closed.push('the folder'))
        opened.defer(() => {
          closed.push('the server')
          throw new Error('and closing failed too')
        })
        throw new Error('the second server did not start')
      },
    },
    [],
    [],
  )
  await expect(run(one)).rejects.toThrow('the second server did not start')
  expect(closed).toEqual(['the server', 'the folder'])
})

test('the page has a row for each promise, kept or not, and another page the other ratios', async () => {
  const kept = await run(benchmark({ title: 'Idle: memory' }, [0, 10, 10, 10], [0, 10, 10, 10]))
  const broken = await run(benchmark({}, [0, 30, 30, 30], [0, 10, 10, 10]))
  const free = await run(benchmark({ title: 'Free', promises: [] }, [0, 30, 30, 30], [0, 10, 10, 10]))
  const text = page([kept, broken, free])
  expect(text).toContain('1 of 2 promises are kept')
  expect(text).toContain('| Idle: memory | 10.0 ms | the floor | 1.00 (1.00–1.00) | ≤ 2 | ✓ |')
  expect(text).toContain('| A figure | 30.0 ms | the floor | 3.00 (3.00–3.00) | ≤ 2 | **no** |')
  expect(measurements([kept, broken, free])).toContain('Free: 30.0 ms. Ratios: the floor 3.00 (3.00–3.00).')
})

test('the page names the newest proof', async () => {
  const result = await run(benchmark({}, [1, 1, 1], [1, 1, 1]))
  const text = page([result], { proof: 'bench/results/proof-2026-11-21.md' })
  expect(text).toContain('newest proof: `bench/results/proof-2026-11-21.md`')
  expect(page([result])).not.toContain('newest proof')
})
