import { getEventListeners } from 'node:events'
import { expect, onTestFinished, test, vi } from 'vitest'
import {
  type LiveResult,
  runLive,
  type Step,
  type StepOutcome,
  type Target,
} from '../../../src/core/live/live.ts'

const PASSED: StepOutcome = { state: 'passed', detail: 'is well' }
const step = (check: Step['check'], run: Step['run']): Step => ({ check, variables: ['X_URL'], run })
const target = (name: Target['name'], steps: Target['steps'], order: Target['order'] = 'chain'): Target => ({
  name,
  services: ['web'],
  variables: ['X_URL'],
  order,
  steps,
})
const told = (results: readonly LiveResult[]) =>
  results.map(({ target: name, check, state, detail }) => `${name} ${check}: ${state}, ${detail}`)

const run = (
  targets: readonly Target[],
  more: Partial<Parameters<typeof runLive>[2]> = {},
  monotonic = () => 0,
) =>
  runLive({ monotonic }, targets, {
    limitMs: 5000,
    deadlineMs: 5000,
    signal: new AbortController().signal,
    ...more,
  })

test('a step that never ends takes no more than its own time limit, even if it ignores its signal', async () => {
  let aborted = false
  const results = await run(
    [
      target('api', [step('health', () => new Promise(() => {}))]),
      target('agent', [
        step(
          'health',
          (signal) =>
            new Promise(() =>
              signal.addEventListener('abort', () => {
                aborted = true
              }),
            ),
        ),
      ]),
      target('store', [step('migrations', async () => PASSED)]),
    ],
    { limitMs: 30 },
  )
  expect(told(results)).toEqual([
    'api health: failed, gives no answer in time',
    'agent health: failed, gives no answer in time',
    'store migrations: passed, is well',
  ])
  expect(aborted).toBe(true)
})

test('at the deadline, running checks have failed, and checks that have not begun are warnings and never pass', async () => {
  const results = await run(
    [
      target('api', [
        step('name resolution', () => new Promise(() => {})),
        step('health', async () => PASSED),
      ]),
      target(
        'sender',
        [
          step('domain', async () => PASSED),
          step('SPF', () => new Promise(() => {})),
          step('DMARC', async () => PASSED),
        ],
        'fan',
      ),
    ],
    { deadlineMs: 30 },
  )
  expect(told(results)).toEqual([
    'api name resolution: failed, cannot be looked up: no name server answers',
    'api health: skipped, not tried, as name resolution failed',
    'sender domain: passed, is well',
    'sender SPF: failed, cannot be looked up: no name server answers',
    'sender DMARC: passed, is well',
  ])
  const late = await run([target('api', [step('health', async () => PASSED)])], {
    signal: AbortSignal.abort(),
  })
  expect(told(late)).toEqual(['api health: warning, was not tried: the time for all checks was over'])
})

test('a warning does not end a chain, and a fault is reported without its text', async () => {
  const results = await run([
    target('mail', [
      step('certificate', async () => ({ state: 'warning', id: 'live-plain-text', detail: 'is absent' })),
      step('authorisation', async () => {
        throw new Error('canary')
      }),
    ]),
  ])
  expect(told(results)).toEqual([
    'mail certificate: warning, is absent',
    'mail authorisation: failed, could not be checked',
  ])
})

test('none of the steps that would run at once is tried after the first has failed', async () => {
  const failed: StepOutcome = { state: 'failed', id: 'live-name', detail: 'does not exist' }
  const steps = [step('domain', async () => failed), step('SPF', async () => PASSED)]
  expect(told(await run([target('sender', steps, 'fan')]))).toEqual([
    'sender domain: failed, does not exist',
    'sender SPF: skipped, not tried, as domain failed',
  ])
})

test('progress counts every step, also those skipped, and names what is waited for', async () => {
  const seen: [number, number, string][] = []
  await run(
    [
      target('api', [
        step('name resolution', async () => ({
          state: 'failed',
          id: 'live-name',
          detail: 'does not resolve',
        })),
        step('health', async () => PASSED),
      ]),
      target('agent', 'not configured'),
    ],
    { onProgress: (done, all, waiting) => seen.push([done, all, waiting.join(' ')]) },
  )
  expect(seen).toEqual([
    [1, 2, 'api'],
    [2, 2, ''],
  ])
})

test('when all is done no timer runs on, and nothing listens to the signal', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { signal } = new AbortController()
  await run([target('api', [step('health', async () => PASSED)])], { signal })
  await run([target('api', [step('health', () => Promise.reject(new Error('canary')))])], { signal })
  expect(vi.getTimerCount()).toBe(0)
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('cancelling ends running steps and starts no others', async () => {
  const control = new AbortController()
  const results = await run(
    [
      target('api', [
        step('health', async () => {
          control.abort()
          return new Promise(() => {})
        }),
      ]),
      target('mail', [
        step('certificate', async () => ({ state: 'warning', id: 'live-plain-text', detail: 'is absent' })),
        step('authorisation', async () => PASSED),
      ]),
    ],
    { signal: control.signal },
  )
  expect(told(results)).toEqual([
    'api health: failed, gives no answer in time',
    'mail certificate: failed, gives no answer in time',
    'mail authorisation: skipped, not tried, as certificate failed',
  ])
})

test('a result has its place and its time in tenths of a millisecond; what was not tried has no time', async () => {
  const times = [10, 22.3456]
  const results = await run(
    [
      target('api', [
        {
          ...step('name resolution', async () => ({ state: 'failed', id: 'live-name', detail: 'is not' })),
          place: 'a',
        },
        step('health', async () => PASSED),
      ]),
    ],
    {},
    () => times.shift() ?? 0,
  )
  const common = { target: 'api', services: ['web'], variables: ['X_URL'] }
  const failed = { state: 'failed', id: 'live-name', detail: 'is not', place: 'a', latencyMs: 12.3 }
  const skipped = { state: 'skipped', detail: 'not tried, as name resolution failed' }
  expect(results).toEqual([
    { ...common, check: 'name resolution', ...failed },
    { ...common, check: 'health', ...skipped },
  ])
})
