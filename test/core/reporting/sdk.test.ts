import { get } from 'node:http'
import { registerHooks } from 'node:module'
import { expect, onTestFinished, test, vi } from 'vitest'
import { learning } from '../../../src/presets/learning/platform.ts'
import { recordEnvelopes } from '../../support/envelopes.ts'
import { keptLog } from '../../support/opened.ts'

// The SDK is global to a process: these tests have one of their own (vitest.config.ts).

const opened = () => import('../../../src/reporting.ts')

function warnings(): string[] {
  const said: string[] = []
  const spy = vi
    .spyOn(process, 'emitWarning')
    .mockImplementation((warning) => void said.push(String(warning)))
  onTestFinished(() => spy.mockRestore())
  return said
}

/** The SDK cannot be loaded, with this fault. */
function withoutSdk(fault: Error): void {
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      if (specifier.includes('@sentry/node')) throw fault
      return next(specifier, context)
    },
  })
  onTestFinished(() => {
    hooks.deregister()
    // A failed import would be cached and not tried again.
    vi.resetModules()
  })
}

test('a fault in loading the SDK is thrown, unless it is that the package is missing', async () => {
  withoutSdk(new SyntaxError('a broken package'))
  const { startReporting } = await opened()
  await expect(startReporting({ dsn: 'https://key@errors.example/1' })).rejects.toThrow('a broken package')
})

test('without the package one warning says so, and nothing is reported', async () => {
  withoutSdk(Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' }))
  const said = warnings()
  const { reportError, startReporting } = await opened()
  const { outcome, close } = await startReporting({ dsn: 'https://key@errors.example/1' })
  expect([outcome, said]).toEqual([
    'missing',
    ['a DSN is set, but @sentry/node is not installed: no error is reported'],
  ])
  reportError(new Error('nobody hears this'))
  await close()
  const { log, lines } = keptLog()
  const env = { NEXT_PUBLIC_ERRORTRACK_DSN: `https://${'a'.repeat(32)}@errors.example/1` }
  const { openReporting } = await import('../../../src/daemon/reporting.ts')
  await openReporting({ platform: learning, env, log })
  expect(lines).toMatchObject([
    { level: 'warn', event: 'errortrack_missing', fix: 'npm install @sentry/node' },
  ])
})

test.each([
  [{}, '0.1', { release: undefined, environment: 'production', value: 'canary-secret' }],
  [
    { edge: true, build: 'build-1', environment: 'staging', secrets: ['canary-secret'] },
    '0.02',
    { release: 'build-1', environment: 'staging', value: '[secret]' },
  ],
])(
  'sends only requested items, at the rate of its environment, and adds no tracing headers to requests (%j)',
  async (options, rate, expected) => {
    const { dsn, origin, envelopes } = await recordEnvelopes()
    vi.spyOn(Math, 'random').mockReturnValue(0)
    onTestFinished(() => void vi.restoreAllMocks())
    const said = warnings()
    const { reportError, startReporting } = await opened()
    const { outcome, close } = await startReporting({ dsn, ...options })
    expect([outcome, said]).toEqual(['on', []])
    const sdk = await import('@sentry/node')
    await sdk.startSpan({ name: 'work', op: 'task' }, async () => {
      const sent = await new Promise<string[]>((resolve) => {
        const request = get(`${origin}/elsewhere`, (response) =>
          response.resume().on('end', () => resolve(request.getHeaderNames())),
        )
      })
      expect(sent).toEqual(['host'])
    })
    const cause = new Error('the cause')
    const fault = new Error('canary-secret', { cause })
    reportError(fault)
    reportError(fault)
    await close(5000)
    reportError(new Error('after the end'))

    const items = envelopes.flatMap((envelope) => envelope.items)
    const events = items.filter(({ header }) => header.type === 'event').map(({ payload }) => payload)
    // Once, although it was reported twice; with its cause.
    expect(events).toHaveLength(1)
    const [event] = events
    expect(event?.exception).toMatchObject({ values: [{ value: 'the cause' }, { value: expected.value }] })
    expect([event?.release, event?.environment]).toEqual([expected.release, expected.environment])
    expect(event).not.toHaveProperty('server_name')
    const rates = envelopes.flatMap(
      ({ headers }) => (headers.trace as { sample_rate?: string })?.sample_rate ?? [],
    )
    expect(new Set(rates)).toEqual(new Set([rate]))
  },
)

test('a DSN that the SDK does not take is one warning, and nothing is reported', async () => {
  for (const method of ['error', 'warn'] as const) vi.spyOn(console, method).mockImplementation(() => {})
  onTestFinished(() => void vi.restoreAllMocks())
  const said = warnings()
  const { reportError, startReporting } = await opened()
  const { outcome, close } = await startReporting({ dsn: 'no dsn' })
  expect([outcome, said]).toEqual(['refused', ['the DSN is not one, so no error is reported']])
  reportError(new Error('nobody hears this'))
  await close()
})
