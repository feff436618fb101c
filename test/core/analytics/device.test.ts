import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type AnalyticsEvent, OPT_OUT_KEY } from '../../../src/core/analytics/events.ts'
import { learning } from '../../../src/presets/learning/platform.ts'

// The browser's files need the types of the DOM, which tests of servers do without: they are imported by name.
const load = (name: string) => import(`../../../src/browser/${name}.ts`)

interface Device {
  readonly buffer: {
    keys(): string[]
    read(key: string): string | undefined
    add(event: AnalyticsEvent): void
    acknowledge(keys: readonly string[]): void
    clear(): void
  }
  readonly storage: ReturnType<typeof memory>
  isAllowed(): boolean
  setOptOut(out: boolean): void
}

/** Local storage in memory: names are keys of the object itself. */
function memory(most = Number.POSITIVE_INFINITY) {
  const storage = Object.create({
    getItem: (name: string) => (Object.hasOwn(storage, name) ? storage[name] : null),
    removeItem: (name: string) => delete storage[name],
    setItem(name: string, value: string) {
      if (Object.keys(storage).length >= most && !Object.hasOwn(storage, name)) throw new Error('full')
      storage[name] = value
    },
  })
  return storage
}

async function device(most?: number): Promise<Device> {
  const storage = memory(most)
  vi.stubGlobal('localStorage', storage)
  const all = await load('device')
  return { ...all, storage, buffer: all.openBuffer(storage) }
}
const event = (at: number, kind = 'lesson.viewed'): AnalyticsEvent => ({ kind, at, properties: {} })

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  vi.stubGlobal('addEventListener', () => {})
  vi.stubGlobal('document', { visibilityState: 'visible' })
  vi.stubGlobal('navigator', {})
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

type Request = { body: Blob; signal: AbortSignal }

/** A device with events, whose sender gets these answers one after the other; undefined: none comes; never: it hangs. */
async function sending(answers: readonly (Response | undefined | 'never')[], events = 1) {
  const { buffer, storage } = await device()
  for (let at = 0; at < events; at += 1) buffer.add(event(at))
  const sent: { batch: string; events: { at: number }[] }[] = []
  const requests: (readonly [url: string, Request])[] = []
  const listeners = new Map<string, () => void>()
  vi.stubGlobal('addEventListener', (name: string, listener: () => void) => listeners.set(name, listener))
  let isAllowed = true
  const left = [...answers]
  vi.stubGlobal('fetch', async (url: string, request: Request) => {
    requests.push([url, request])
    sent.push(JSON.parse(await request.body.text()))
    const answer = left.length > 1 ? left.shift() : left[0]
    if (answer === 'never')
      return new Promise((_, reject) => request.signal.addEventListener('abort', () => reject(new Error())))
    if (answer === undefined) throw new TypeError('no connection')
    return answer.clone()
  })
  const { createSender } = await load('sender')
  createSender(buffer, storage, '/api/analytics', () => isAllowed)
  const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000)
  return {
    ...{ buffer, storage, sent, requests, pass },
    happens: (name: string) => listeners.get(name)?.(),
    objects: () => {
      isAllowed = false
    },
    /** Seconds until the next attempt. */
    async nextAfter() {
      const before = sent.length
      let seconds = 0
      for (; sent.length === before && seconds < 4000; seconds += 1) await pass(1)
      return seconds
    },
  }
}

const answered = (status: number, retryAfter?: string) =>
  new Response(status === 204 ? null : '{}', {
    status,
    headers: retryAfter === undefined ? {} : { 'Retry-After': retryAfter },
  })

describe('a lesson page that is read to its end', () => {
  test.each([
    ['without an objection', () => {}, () => {}, ['viewed', 'completed']],
    ['with an objection while it is open', () => {}, object, ['viewed']],
    ['with an objection from before', object, () => {}, []],
  ])('%s records what it may', async (_, before, later, recorded) => {
    const { storage, buffer } = await device()
    const end = {}
    let see = (_: readonly { isIntersecting: boolean }[]) => {}
    const observed: unknown[] = []
    vi.stubGlobal('document', {
      querySelector: (selector: string) =>
        selector === '[data-lesson]'
          ? { dataset: { lesson: '3' }, lastElementChild: end }
          : { textContent: JSON.stringify(learning.events) },
    })
    const watching = {
      observe: (element: unknown) => observed.push(element),
      disconnect: () => observed.pop(),
    }
    vi.stubGlobal('IntersectionObserver', function (this: unknown, seen: typeof see) {
      see = seen
      return watching
    })
    before(storage)
    vi.resetModules()
    await load('lesson')
    expect(observed).toEqual([end])
    later(storage)
    see([{ isIntersecting: false }])
    expect(observed).toEqual([end])
    see([{ isIntersecting: true }])
    expect(observed).toEqual([])
    const items = buffer.keys().map((key) => JSON.parse(buffer.read(key) ?? ''))
    expect(items.map(([kind, , properties]) => [kind, properties.lesson])).toEqual(
      recorded.map((what) => [`lesson.${what}`, '3']),
    )
  })
})

/** As another tab does. */
function object(storage: ReturnType<typeof memory>): void {
  storage.setItem(OPT_OUT_KEY, '1')
}

describe('a batch of events', () => {
  test.each([
    ...[200, 202, 204].map((status) => [status, 'is done with'] as const),
    // It would be refused again.
    ...[400, 413].map((status) => [status, 'is dropped'] as const),
  ])('that is answered with %d %s, whatever else the answer says', async (status) => {
    const { sent, storage, buffer, pass } = await sending([answered(status, '60')], 2)
    await pass(6)
    expect(sent).toHaveLength(1)
    expect(buffer.keys().map((key) => buffer.read(key)?.endsWith(',1]'))).toEqual([true, true])
    await pass(4000)
    expect([sent.length, storage.getItem('platform.batch')]).toEqual([1, null])
  })

  test.each([401, 404, 408, 429, 500, 503, undefined])(
    'that is answered with %s is sent again under its id, no sooner than Retry-After says',
    async (status) => {
      const answers = [undefined, '30', '600', 'soon'].map((said) =>
        status === undefined ? undefined : answered(status, said),
      )
      const { sent, nextAfter, buffer } = await sending(answers)
      const waits: number[] = []
      for (let attempt = 0; attempt < 4; attempt += 1) waits.push(await nextAfter())
      // Half as much again at random, and five seconds in which others gather.
      expect(waits).toEqual(status === undefined ? [5, 25, 45, 85] : [5, 25, 45, 605])
      expect(new Set(sent.map(({ batch }) => batch)).size).toBe(1)
      expect(buffer.keys().map((key) => buffer.read(key)?.endsWith('}]'))).toEqual([true])
    },
  )

  test('that is taken after failures brings the usual pace back', async () => {
    const { buffer, nextAfter } = await sending([answered(503, '900'), undefined, answered(202)])
    for (let attempt = 0; attempt < 3; attempt += 1) await nextAfter()
    buffer.add(event(9))
    expect(await nextAfter()).toBe(5)
  })

  test('has at most 500 events, the oldest first, and the next another id', async () => {
    const { sent, pass } = await sending([answered(202)], 501)
    await pass(20)
    expect(sent.map(({ events }) => events.length)).toEqual([500, 1])
    expect(sent.flatMap(({ events }) => events.map(({ at }) => at))).toEqual([...Array(501).keys()])
    expect(sent[0]?.batch).not.toBe(sent[1]?.batch)
  })

  test('whose answer was lost keeps its id after one of its events was deleted from the device', async () => {
    const { sent, pass, storage, buffer } = await sending([undefined, answered(202)], 3)
    await pass(6)
    storage.removeItem(buffer.keys()[0] ?? '')
    await pass(60)
    const [first, second] = sent
    expect(second?.batch).toBe(first?.batch)
    expect(second?.events.map(({ at }) => at)).toEqual([1, 2])
  })

  test('leaves with its page, without cookies and the page’s address, and at most 60 kB at once', async () => {
    const { sent, requests, happens, buffer, pass } = await sending([answered(202)], 0)
    for (let at = 0; at < 90; at += 1) buffer.add({ ...event(at), properties: { topic: 'x'.repeat(1000) } })
    happens('visibilitychange')
    await pass(1)
    expect(sent).toEqual([])
    vi.stubGlobal('document', { visibilityState: 'hidden' })
    happens('visibilitychange')
    happens('visibilitychange')
    await pass(1)
    expect(requests).toEqual([
      [
        '/api/analytics',
        {
          ...{ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: expect.any(Blob) },
          ...{ credentials: 'omit', referrerPolicy: 'no-referrer', keepalive: true },
          signal: expect.any(AbortSignal),
        },
      ],
    ])
    const { size } = requests[0]?.[1].body ?? new Blob([])
    expect([size > 50_000, size < 60_000]).toEqual([true, true])
    await pass(20)
    expect(sent.flatMap(({ events }) => events.map(({ at }) => at))).toEqual([...Array(90).keys()])
  })

  test('that gets no answer is given up after half a minute, and sent again', async () => {
    const { sent, requests, pass } = await sending(['never', answered(202)])
    await pass(34)
    expect(requests[0]?.[1].signal.aborted).toBe(false)
    await pass(60)
    expect([requests[0]?.[1].signal.aborted, sent.length]).toEqual([true, 2])
    expect(sent[1]).toEqual(sent[0])
  })

  test('on its way is taken back when the visitor objects in another tab', async () => {
    const { sent, requests, objects, happens, pass } = await sending(['never'])
    await pass(6)
    happens('storage')
    expect(requests[0]?.[1].signal.aborted).toBe(false)
    objects()
    happens('storage')
    expect(requests[0]?.[1].signal.aborted).toBe(true)
    await pass(4000)
    expect(sent).toHaveLength(1)
  })

  test('waits for another tab that sends', async () => {
    let isFree = false
    const request = async (
      _: string,
      { ifAvailable }: object & { ifAvailable?: true },
      work: (lock: unknown) => unknown,
    ) => ifAvailable && work(isFree ? {} : null)
    vi.stubGlobal('navigator', { locks: { request } })
    const { sent, pass } = await sending([answered(202)])
    await pass(30)
    expect(sent).toEqual([])
    isFree = true
    await pass(6)
    expect(sent).toHaveLength(1)
  })

  test('waits at most a day, whatever Retry-After says', async () => {
    const { sent, pass } = await sending([answered(503, '8640000'), answered(202)])
    await pass(86_400)
    expect(sent).toHaveLength(1)
    await pass(60)
    expect(sent).toHaveLength(2)
  })

  test('is not sent once the visitor objects, and waits on the device', async () => {
    const { sent, objects, pass, buffer } = await sending([answered(202)])
    objects()
    await pass(60)
    expect([sent.length, buffer.keys().length]).toEqual([0, 1])
  })
})

describe('a page', () => {
  /** A page that starts anew with this endpoint, and what it sends. */
  async function page(endpoint: string | undefined, before = (_: Device['storage']) => {}) {
    const { storage } = await device()
    before(storage)
    const sent: { events: unknown[] }[] = []
    vi.stubGlobal('fetch', async (_: string, { body }: Request) => {
      sent.push(JSON.parse(await body.text()))
      await new Promise((resolve) => setTimeout(resolve, 500))
      return answered(202)
    })
    // Names of events differ by it.
    vi.restoreAllMocks()
    vi.resetModules()
    const all = await load('browser')
    all.start({ events: learning.events, endpoint })
    all.start({ events: learning.events, endpoint })
    await vi.dynamicImportSettled()
    const kept = () => Object.keys(storage).filter((key) => key.startsWith('platform.event.'))
    return { ...all, storage, sent, kept, pass: (s: number) => vi.advanceTimersByTimeAsync(s * 1000) }
  }

  test('sends what it tracks, sanitized, and no more once it opts out', async () => {
    const { track, optOut, sent, kept, storage, pass } = await page(' /api/analytics ')
    track('circuit.run', { device: 'simulator', email: 'a@example.com', topic: 'to a@example.com' })
    track('kiln.fired', { device: 'simulator' })
    expect(JSON.stringify(storage)).not.toContain('example')
    await pass(6)
    const { events } = sent[0] ?? {}
    expect(events).toEqual([
      { kind: 'circuit.run', at: expect.any(Number), properties: { device: 'simulator' } },
    ])
    track('page.viewed')
    optOut()
    track('page.viewed')
    await pass(4000)
    expect([sent.length, kept().length, storage.getItem(OPT_OUT_KEY)]).toEqual([1, 2, '1'])
    optOut(false)
    track('page.viewed')
    await pass(6)
    expect([sent.length, kept().length]).toEqual([2, 3])
    // Also what is on its way.
    let onItsWay: AbortSignal | undefined
    vi.stubGlobal('fetch', (_: string, { signal }: Request) => {
      onItsWay = signal
      return new Promise(() => {})
    })
    track('page.viewed')
    await pass(6)
    expect(onItsWay?.aborted).toBe(false)
    optOut()
    expect(onItsWay?.aborted).toBe(true)
    optOut(false)
  })

  test('that may not send when it starts does once the visitor opts in', async () => {
    const { track, optOut, sent, pass } = await page('/api/analytics', object)
    optOut(false)
    track('page.viewed')
    await pass(6)
    expect(sent.map(({ events }: { events: unknown[] }) => events.length)).toEqual([1])
  })

  test.each([undefined, '', ' '])(
    'without an endpoint (%j) keeps what it tracks on the device',
    async (endpoint) => {
      const { track, sent, kept, pass } = await page(endpoint)
      track('page.viewed')
      await pass(4000)
      expect([sent, kept().length]).toEqual([[], 1])
    },
  )

  test('whose visitor sends Global Privacy Control, or that may not read the storage, records nothing and is not broken', async () => {
    const { track, optOut, start, kept } = await page('/api/analytics')
    vi.stubGlobal('navigator', { globalPrivacyControl: true })
    track('page.viewed')
    expect(kept()).toEqual([])
    vi.stubGlobal('navigator', {})
    Object.defineProperty(globalThis, 'localStorage', {
      configurable: true,
      get: () => {
        throw new DOMException('denied', 'SecurityError')
      },
    })
    for (const act of [() => track('page.viewed'), optOut, () => start({})]) expect(act).not.toThrow()
    optOut(false)
    expect(kept()).toEqual([])
  })
})

describe('the buffer of a device', () => {
  test('gives up what was acknowledged first when the storage is full, and keeps the rest in memory', async () => {
    const { buffer } = await device(2)
    for (const at of [1, 2]) buffer.add(event(at))
    buffer.acknowledge(buffer.keys().slice(0, 1))
    buffer.add(event(3))
    buffer.add(event(4))
    const times = () => buffer.keys().map((key) => JSON.parse(buffer.read(key) ?? '')[1])
    expect(times()).toEqual([2, 3, 4])
    buffer.acknowledge(buffer.keys())
    expect(buffer.keys().map((key) => buffer.read(key)?.endsWith('}]'))).toEqual([false, false])
    buffer.clear()
    expect(times()).toEqual([])
  })

  test('deletes an acknowledged event that the storage has no room to mark, so that it is not sent again', async () => {
    const { buffer, storage } = await device()
    buffer.add(event(1))
    storage.setItem = () => {
      throw new Error('full')
    }
    buffer.acknowledge(buffer.keys())
    expect(buffer.keys()).toEqual([])
  })

  test('gives up no more of what was acknowledged than it makes room for, as /insights shows the rest', async () => {
    const { buffer } = await device(300)
    for (let at = 0; at < 300; at += 1) buffer.add(event(at))
    buffer.acknowledge(buffer.keys())
    buffer.add(event(300))
    expect(buffer.keys()).toHaveLength(101)
  })

  test('never holds more than the last 10,000 events', async () => {
    const { buffer, storage } = await device()
    const names = Array.from(
      { length: 10_000 },
      (_, at) => `platform.event.${at.toString(36).padStart(9, '0')}.x`,
    )
    Object.assign(storage, Object.fromEntries(names.map((name) => [name, '[]'])))
    for (let at = 10_000; at < 10_200; at += 1) buffer.add(event(at))
    const left = buffer.keys()
    expect(left.length).toBeLessThanOrEqual(10_000)
    expect(left.at(-1)).toContain((10_199).toString(36))
  })

  test.each([
    [undefined, true],
    ['0', true],
    ['1', false],
    ['true', false],
  ])('with the opt-out key %j is it filled: %s', async (value, allowed) => {
    const { storage, isAllowed } = await device()
    if (value !== undefined) storage.setItem('platform.optOut', value)
    expect(isAllowed()).toBe(allowed)
    vi.stubGlobal('navigator', { globalPrivacyControl: true })
    expect(isAllowed()).toBe(false)
  })

  test('has room for an objection even where the storage is full, and one that is taken back counts no more', async () => {
    const { storage, buffer, isAllowed, setOptOut } = await device(1)
    buffer.add(event(1))
    setOptOut(true)
    expect([isAllowed(), Object.keys(storage)]).toEqual([false, ['platform.optOut']])
    setOptOut(false)
    expect([isAllowed(), Object.keys(storage)]).toEqual([true, []])
  })
})
