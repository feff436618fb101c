import { expect, test } from 'vitest'
import {
  type Envelope,
  scrubEnvelope,
  sdkOptions,
  sdkReporter,
} from '../../../src/core/reporting/envelope.ts'
import { createScrub } from '../../../src/core/reporting/scrub.ts'

const scrub = createScrub({ secrets: ['canary'] })
const DSN = 'https://key@errors.example/1'
const sent = (payload: unknown, type = 'event') =>
  scrubEnvelope([{ dsn: DSN }, [[{ type }, payload]]] as Envelope, scrub)
/** The parts of one event that are sent. */
const left = (payload: Record<string, unknown>) => sent(payload)?.[1][0]?.[1]

test.each(['replay_event', 'profile_chunk', 'sessions', 'attachment', 'feedback', 'check_in'])(
  'an item of the kind %s does not leave, whatever it holds',
  (type) => {
    expect(sent({ message: 'x' }, type)).toBeUndefined()
  },
)

test('sends events and transactions without other items, and drops malformed ones', () => {
  expect(sent('text')).toBeUndefined()
  expect(sent(null)).toBeUndefined()
  expect(sent([])).toBeUndefined()
  const mixed = scrubEnvelope(
    [
      {},
      [
        [{ type: 'attachment' }, 'canary'],
        [{ type: 'event' }, { a: 1 }],
        [{ type: 'transaction' }, { b: 2 }],
      ],
    ],
    scrub,
  )
  expect(mixed?.[1]).toEqual([
    [{ type: 'event' }, { a: 1 }],
    [{ type: 'transaction' }, { b: 2 }],
  ])
})

test('the address that the envelope goes to stays, and the name of its trace is scrubbed', () => {
  const trace = { trace_id: 't', transaction: 'GET /a?token=canary' }
  const envelope = scrubEnvelope([{ dsn: DSN, trace }, [[{ type: 'event' }, {}]]], scrub)
  expect(envelope?.[0]).toEqual({ dsn: DSN, trace: { trace_id: 't', transaction: 'GET /a' } })
})

test.each(['request', 'server_name', 'modules', 'attachments'])('an event leaves without its %s', (name) => {
  expect(left({ [name]: { url: 'x' }, level: 'error' })).toEqual({ level: 'error' })
})

test('sends only a user’s textual id', () => {
  expect(
    left({ user: { id: 'u canary', email: 'a@b.example', ip_address: '203.0.113.7', username: 'ada' } }),
  ).toEqual({
    user: { id: 'u [secret]' },
  })
  expect(left({ user: { id: 7 } })).toEqual({})
  expect(left({ user: { email: 'a@b.example' } })).toEqual({})
})

test('stack frames leave without their local variables, at every depth, and with their texts scrubbed', () => {
  const kept = { function: 'run', lineno: 3 }
  const frame = { ...kept, context_line: 'const a = "canary"', vars: { password: 'x' } }
  const clean = { ...kept, context_line: 'const a = "[secret]"' }
  expect(
    left({
      exception: { values: [{ type: 'Error', value: 'of canary', stacktrace: { frames: [frame] } }] },
      threads: { values: [{ stacktrace: { frames: [frame, frame] } }] },
      sdkProcessingMetadata: { request: 1 },
    }),
  ).toEqual({
    exception: { values: [{ type: 'Error', value: 'of [secret]', stacktrace: { frames: [clean] } }] },
    threads: { values: [{ stacktrace: { frames: [clean, clean] } }] },
  })
})

test('free-form parts lose what they must not hold: extra, tags, data, breadcrumbs, spans', () => {
  const free = { email: 'a@b.example', lesson: 3, note: 'canary' }
  const clean = { email: '[removed]', lesson: 3, note: '[secret]' }
  expect(
    left({
      extra: free,
      tags: free,
      data: free,
      breadcrumbs: [{ message: 'canary', data: free, category: 'http' }, 'canary'],
      spans: [{ description: 'GET /?a=canary', data: free, span_id: 's' }],
    }),
  ).toMatchObject({
    extra: clean,
    tags: clean,
    data: clean,
    breadcrumbs: [{ message: '[secret]', data: clean, category: 'http' }, undefined],
    spans: [{ description: 'GET /', data: clean, span_id: 's' }],
  })
  expect(left({ breadcrumbs: 'canary', spans: { a: 'canary' } })).toEqual({})
})

test('contexts keep the trace, the runtime and the systems, and lose what tells devices apart', () => {
  expect(
    left({
      contexts: {
        trace: { trace_id: 't', data: { query: 'canary', lesson: 1 } },
        runtime: { name: 'node', version: '24' },
        os: { name: 'canary' },
        browser: { name: 'b' },
        device: { memory: 1 },
        app: { start: 1 },
        culture: { timezone: 'x' },
        cloud_resource: { id: 'x' },
        own: { email: 'a@b.example' },
      },
    }),
  ).toEqual({
    contexts: {
      trace: { trace_id: 't', data: { query: '[removed]', lesson: 1 } },
      runtime: { name: 'node', version: '24' },
      os: { name: '[secret]' },
      browser: { name: 'b' },
      own: { email: '[removed]' },
    },
  })
  expect(left({ contexts: 'canary' })).toEqual({})
})

test('texts are kept to the limit of depth, in objects and in lists, and left out one level below it', () => {
  const inObjects = (depth: number): unknown => (depth === 0 ? 'end' : { a: inObjects(depth - 1) })
  const inLists = (depth: number): unknown => (depth === 0 ? 'end' : [inLists(depth - 1)])
  for (const nested of [inObjects, inLists]) {
    expect(JSON.stringify(left({ rest: nested(12) }))).toContain('end')
    expect(JSON.stringify(left({ rest: nested(13) }))).not.toContain('end')
  }
})

test('a trace whose transaction has no name that is a text leaves as it is', () => {
  for (const trace of [{ trace_id: 't', transaction: 7 }, { trace_id: 't' }])
    expect(scrubEnvelope([{ trace }, [[{ type: 'event' }, { a: 1 }]]], scrub)?.[0]).toEqual({ trace })
})

test('reports carry the build stamp and the environment, each without the other too', () => {
  for (const told of [{ build: 'build-7' }, { environment: 'staging' }, { build: 'b', environment: 'e' }]) {
    const { release: build, environment } = sdkOptions({ dsn: DSN, ...told }) as Record<string, unknown>
    expect({ build, environment }).toEqual({ build: undefined, environment: undefined, ...told })
  }
})

test('traces are kept at the documented rates, and the SDK may gather nothing by itself', () => {
  const opened = [false, true].map((edge) => sdkOptions({ dsn: DSN, edge }))
  expect(opened.map(({ tracesSampleRate }) => tracesSampleRate)).toEqual([0.1, 0.02])
  // Reports about reports that were dropped would leave although nothing else does.
  expect(opened[0]?.sendClientReports).toBe(false)
  // The SDK would gather by default any kind left out here.
  expect(opened[0]?.dataCollection).toEqual({
    ...Object.fromEntries(
      ['userInfo', 'cookies', 'httpHeaders', 'urlQueryParams', 'databaseQueryData', 'queues'].map((name) => [
        name,
        false,
      ]),
    ),
    stackFrameVariables: false,
    graphQL: { document: false, variables: false },
    genAI: { inputs: false, outputs: false },
    mcp: { inputs: false, outputs: false },
    httpBodies: [],
    frameContextLines: 0,
  })
})

test('a reporter hands the SDK errors, messages with their level, and users, also the end of one', () => {
  const calls: unknown[][] = []
  const { report } = sdkReporter({
    captureException: (...args) => calls.push(['error', ...args]),
    captureMessage: (...args) => calls.push(['message', ...args]),
    setUser: (...args) => calls.push(['user', ...args]),
  })
  report({ kind: 'error', error: 'e', context: { a: 1 } })
  report({ kind: 'message', message: 'm', level: 'warning', context: undefined })
  report({ kind: 'user', user: { id: 'u' } })
  report({ kind: 'user', user: undefined })
  expect(calls).toEqual([
    ['error', 'e', { captureContext: { extra: { a: 1 } } }],
    ['message', 'm', { level: 'warning', extra: {} }],
    ['user', { id: 'u' }],
    ['user', null],
  ])
})
