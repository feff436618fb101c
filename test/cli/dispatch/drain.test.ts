import { expect, test } from 'vitest'
import { drain, remoteSource, type Source } from '../../../src/cli/commands/dispatch.ts'
import type { Context, Output } from '../../../src/cli/context.ts'
import type { DispatchResult } from '../../../src/core/course/dispatch.ts'
import { systemClock } from '../../../src/core/host.ts'
import { testContext } from '../../support/context.ts'
import { serve } from '../../support/servers.ts'

const call = (parts: Partial<DispatchResult>): DispatchResult => ({
  processed: 2,
  sent: 2,
  failed: 0,
  unknown: 0,
  remaining: 9,
  limit: 2,
  results: [],
  ...parts,
})
const results = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({
    subscription: `s${from + n}`,
    day: 1,
    sent: false,
  })) as unknown as DispatchResult['results']
type Options = Parameters<typeof remoteSource>[2]
const options = (parts: Partial<Options> = {}) => ({ envFile: [], ...parts }) as Options

/** What a drain makes of these calls, how many it made, and what it said. */
async function drained(
  calls: readonly DispatchResult[],
  parts: Partial<Options> = { drain: true },
  each: (made: number) => void = () => {},
  signal = new AbortController().signal,
  { env, ...terminal }: Partial<Pick<Context, 'env'> & Pick<Output, 'isTTY' | 'columns'>> = {},
) {
  let made = 0
  const time = { now: 0 }
  const { context, stderr } = testContext({
    env: env ?? {},
    signal,
    clock: { ...systemClock, monotonic: () => time.now },
  })
  Object.assign(context.stderr, terminal)
  const source: Source = {
    call: async () => {
      const one = calls[made]
      made += 1
      each(made)
      time.now += 10_000
      if (one === undefined) throw new Error('one call too many')
      return one
    },
    close: async () => {},
  }
  return { total: await drain(context, source, options(parts)), made, said: stderr() }
}

test('without --drain there is one call, whatever is left', async () => {
  expect((await drained([call({})], {})).made).toBe(1)
})

test('a drain ends with the call below its limit, and adds up what all of them did', async () => {
  const { total, made, said } = await drained([
    call({ failed: 1, sent: 1 }),
    call({ unknown: 1, sent: 1, remaining: 5 }),
    call({ processed: 1, sent: 1, remaining: 3, waiting: 2 }),
  ])
  expect(made).toBe(3)
  expect(total).toMatchObject({ processed: 5, sent: 3, failed: 1, unknown: 1, remaining: 3, waiting: 2 })
  // Without a terminal, a line every ten seconds.
  expect(said.split('\n')).toEqual([
    expect.stringContaining('1 sent, 1 failed, 9 left'),
    expect.stringContaining('2 sent, 1 failed, 1 unknown, 5 left'),
    '',
  ])
})

// A serial console says that it has no columns: ora would erase lines without end.
test.each([{ env: { CI: 'true' } }, { env: { TERM: 'dumb' } }, { columns: 0 }])(
  'on a terminal with %j, where nothing can be drawn over, the progress is lines too',
  async (parts) => {
    const { said } = await drained([call({}), call({ processed: 1 })], undefined, undefined, undefined, {
      ...parts,
      isTTY: true,
    })
    expect(said).toMatch(/^[█░]{24} +\d+ % {2}2 sent, 9 left, .*\n$/)
  },
)

test('a drain ends when a call says why it sent no more, and when it is interrupted', async () => {
  expect((await drained([call({ reason: 'the provider is away' })])).made).toBe(1)
  // A call whose time is over may have left more than its limit.
  const cut = call({ processed: 1, reason: 'the time for one call is over' })
  expect((await drained([cut, call({ processed: 1 })])).made).toBe(2)
  const stop = new AbortController()
  const { made, total } = await drained(
    [call({}), call({})],
    { drain: true },
    (count) => {
      if (count === 2) stop.abort()
    },
    stop.signal,
  )
  expect(made).toBe(2)
  expect(total).toMatchObject({ remaining: 9, reason: expect.stringContaining('it was stopped before all') })
})

test('a summary keeps the latest thousand lessons that were not sent', async () => {
  const { total } = await drained([
    call({ results: results(0, 600) }),
    call({ results: results(600, 600), processed: 0 }),
  ])
  expect(total.results).toHaveLength(1000)
  expect([total.results[0]?.subscription, total.results.at(-1)?.subscription]).toEqual(['s200', 's1199'])
})

test('calls of one drain have one name, its limit goes along, and a call alone has no name', async () => {
  const asked: URL[] = []
  const url = await serve((incoming, response) => {
    asked.push(new URL(incoming.url ?? '', 'http://x'))
    response.end(JSON.stringify(call({})))
  })
  const { context } = testContext()
  const ask = async (parts: Partial<Options>) => {
    const source = await remoteSource(
      context,
      { EMAIL_DISPATCH_SECRET: 'a-secret' },
      options({ url, ...parts }),
    )
    for (let n = 0; n < 2; n += 1) await source.call(() => {})
    return asked.splice(0).map(({ searchParams }) => [searchParams.get('limit'), searchParams.get('run')])
  }
  expect(await ask({})).toEqual([
    [null, null],
    [null, null],
  ])
  const [[limit, run] = [], second] = await ask({ drain: true, limit: 7 })
  expect(limit).toBe('7')
  expect(run).toMatch(/^[\w-]{16}$/)
  expect(second).toEqual([limit, run])
  const [[, other] = []] = await ask({ drain: true })
  expect(other).toMatch(/^[\w-]{16}$/)
  expect(other).not.toBe(run)
})
