import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { adviceFor, CONDITIONS } from '../../../src/core/incidents/advice.ts'
import { type Channel, mailChannel, webhookChannel } from '../../../src/core/incidents/channels.ts'
import type { MessageKind, StoredIncident } from '../../../src/core/incidents/incident.ts'
import { alertText } from '../../../src/core/incidents/text.ts'
import type { Held } from '../../../src/core/mail/holds.ts'
import type { Mail, SendOutcome } from '../../../src/core/mail/mailer.ts'
import { secret } from '../../../src/core/secret.ts'
import {
  change,
  channelOf,
  closeIncident,
  hostAt,
  incidentWith,
  openIncident,
  tellDue,
} from '../../support/incidents.ts'
import { openTestStore } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 22, 9, 30)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const SENT: SendOutcome = { kind: 'sent', id: 'x' }
const NO_ANSWER: SendOutcome = { kind: 'transient', reason: 'no answer', scope: 'message' }

const incident = (parts: Partial<StoredIncident> = {}) => incidentWith({ openedAt: NOW, ...parts })

/** An open incident in a store, told by a channel that answers so. */
async function telling(answer: () => SendOutcome) {
  const { incidents: store } = await openTestStore(undefined)
  await openIncident(store, incident())
  let now = NOW
  const told: string[] = []
  const logged: unknown[] = []
  const note = (level: string, event: string, fields = {}) => void logged.push([level, event, fields])
  const host = hostAt(() => now, {
    info: (event, _, fields) => note('info', event, fields),
    warn: (event, _, fields) => note('warn', event, fields),
  })
  const channel = channelOf('webhook', async ({ id }) => {
    told.push(id)
    return answer()
  })
  return {
    store,
    told,
    logged,
    at: async (after: number, channels: readonly Channel[] = [channel], held?: Held) => {
      now = NOW + after
      await tellDue(host, store, channels, held)
      return told.splice(0).length
    },
  }
}

test('while alerts are paused those about a pause leave, and all others when it ends', async () => {
  const it = await telling(() => SENT)
  await openIncident(it.store, incident({ id: 'paused', cause: 'mail_paused' }))
  const alert = { stream: 'alert', at: NOW, reason: 'the pager is broken' } as const
  const paused: Held = async (stream) => (stream === 'alert' ? alert : undefined)
  expect(await it.at(0, undefined, paused)).toBe(1)
  await it.store.acknowledge({ id: 'paused', now: NOW, by: 'ada' })
  expect(await it.at(1, undefined, paused)).toBe(1)
  await closeIncident(it.store, 'mail_paused', NOW + 2)
  expect(await it.at(2, undefined, paused)).toBe(1)
  expect(await it.at(MINUTE)).toBe(1)
})

test('the alert about a pause leaves also during a silence', async () => {
  const it = await telling(() => SENT)
  await openIncident(it.store, incident({ id: 'paused', cause: 'courses_paused', openedAt: NOW + 1 }))
  await it.store.silence({ from: NOW, until: NOW + HOUR, reason: 'deploy', by: 'ci' })
  expect(await it.at(1)).toBe(1)
  expect((await it.store.messages(['one', 'paused'])).map((one) => one.incident)).toEqual(['paused'])
  expect(await it.at(HOUR)).toBe(1)
})

test('a pause that cannot be read holds back no alert', async () => {
  const it = await telling(() => SENT)
  expect(await it.at(0, undefined, () => Promise.reject(new Error('the store is away')))).toBe(1)
})

test('a mail server that takes minutes to answer gets an alert once, however many processes share the store', async () => {
  let elapsed = NOW
  const { incidents: store } = await openTestStore(undefined, () => elapsed)
  await openIncident(store, incident())
  const { promise: answered, resolve: answer } = Promise.withResolvers<SendOutcome>()
  const told: string[] = []
  const channel = channelOf(
    'mail',
    ({ id }) => {
      told.push(id)
      return answered
    },
    { patienceMs: 14 * MINUTE },
  )
  const passed: ((at: number) => void)[] = []
  const timer = {
    monotonic: () => elapsed,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        const until = elapsed + ms
        passed.push((at) => at >= until && resolve())
        signal?.addEventListener('abort', () => reject(signal.reason))
      }),
  }
  const host = hostAt(() => NOW, {}, timer)
  const send = () => tellDue(host, store, [channel])
  const first = send()
  const settled = async () => {
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate)
  }
  const pass = async () => {
    await settled()
    elapsed += 10_000
    for (const wake of passed) wake(elapsed)
  }
  for (let step = 0; step < 84; step += 1) {
    await pass()
    await settled()
    await send()
  }
  answer(SENT)
  await pass()
  await first
  await send()
  expect(told).toEqual(['alert.one.opened'])
  expect(await store.messages(['one'])).toMatchObject([{ outcome: 'sent', attempts: 1 }])
})

test('a silence that begins while alerts are being sent holds back the rest', async () => {
  const it = await telling(() => SENT)
  await openIncident(it.store, incident({ id: 'two', cause: 'store' }))
  const told: string[] = []
  const slow = channelOf(
    'webhook',
    async ({ id }) => {
      told.push(id)
      await it.store.silence({ from: NOW, until: NOW + HOUR, reason: 'deploy', by: 'ci' })
      return SENT
    },
    { lines: 1 },
  )
  await it.at(0, [slow])
  expect(told).toHaveLength(1)
})

test('no reminder follows an acknowledgement that comes when it is in hand, and the acknowledgement is told', async () => {
  const { store, at } = await telling(() => SENT)
  await at(0)
  const told: string[] = []
  const channel = channelOf('webhook', async ({ id, kind }) => {
    told.push(kind)
    return { kind: 'sent', id }
  })
  const host = hostAt(() => NOW + 4 * HOUR)
  const claimAlerts: typeof store.claimAlerts = async (asked) => {
    const claims = await store.claimAlerts(asked)
    await store.acknowledge({ id: 'one', now: NOW + 4 * HOUR, by: 'ada' })
    return claims
  }
  await tellDue(host, { ...store, claimAlerts }, [channel])
  await tellDue(host, store, [channel])
  expect(told).toEqual(['acknowledged'])
})

test('an alert that is in hand when its incident ends is not told, nor is that end', async () => {
  const { store, told, at } = await telling(() => SENT)
  const channel = channelOf('webhook', async ({ id, kind }) => {
    told.push(kind)
    return { kind: 'sent', id }
  })
  const claimAlerts: typeof store.claimAlerts = async (asked) => {
    const claims = await store.claimAlerts(asked)
    await closeIncident(store, 'mail', NOW)
    return claims
  }
  await tellDue(
    hostAt(() => NOW),
    { ...store, claimAlerts },
    [channel],
  )
  expect([told, await at(MINUTE), await at(HOUR)]).toEqual([[], 0, 0])
})

test('retries a failed message after 15 s, then ever later up to an hour, and gives up after ten hours', async () => {
  const it = await telling(() => NO_ANSWER)
  let at = 0
  expect(await it.at(0)).toBe(1)
  const key = { incident: 'one', kind: 'opened', channel: 'webhook' }
  expect(it.logged.splice(0)).toEqual([
    ['warn', 'alert_not_sent', { ...key, attempt: 1, reason: 'no answer' }],
  ])
  for (const pause of [15_000, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, HOUR]) {
    expect(await it.at(at + pause - 1)).toBe(0)
    at += pause
    expect(await it.at(at)).toBe(1)
  }
  expect(await it.store.messages(['one'])).toMatchObject([{ ...key, outcome: 'pending', attempts: 7 }])
  for (const pause of Array<number>(8).fill(HOUR)) {
    await it.at(at + pause)
    at += pause
  }
  expect((await it.store.messages(['one'])).find(({ kind }) => kind === 'opened')).toMatchObject({
    outcome: 'failed',
    attempts: 15,
    reason: 'no answer',
  })
  // Reminders go on.
  await it.at(at)
  expect((await it.store.messages(['one'])).map(({ kind }) => kind)).toContain('reminder-2')
})

test('the end of what was told is tried until it is taken, however long its channel is away', async () => {
  let answer: SendOutcome = SENT
  const it = await telling(() => answer)
  await it.at(0)
  answer = NO_ANSWER
  await closeIncident(it.store, 'mail', NOW)
  let tries = 0
  for (let hour = 1; hour < 7 * 24; hour += 1) tries += await it.at(hour * HOUR)
  // Every six hours in the end.
  expect(tries).toBeGreaterThan(20)
  expect(tries).toBeLessThan(45)
  answer = SENT
  expect([await it.at(7 * 24 * HOUR + 6 * HOUR), await it.at(8 * 24 * HOUR)]).toEqual([1, 0])
  expect(await it.store.messages(['one'])).toContainEqual(
    expect.objectContaining({ kind: 'closed', outcome: 'sent' }),
  )
})

test('an end that arrives late, when its cause fails again, does not say that it works', async () => {
  const { incidents: store } = await openTestStore(undefined)
  let now = NOW
  let isUp = true
  const told: string[] = []
  const channel = channelOf('webhook', async ({ incident: about, kind }) => {
    if (!isUp) return NO_ANSWER
    told.push(said(kind, about).title)
    return SENT
  })
  const host = hostAt(() => now)
  const tell = async (ms: number) => {
    now = NOW + ms
    await tellDue(host, store, [channel])
  }
  const opens = (id: string, ms: number) =>
    openIncident(store, incident({ id, cause: 'pots', openedAt: NOW + ms, seenAt: NOW + ms }))
  await opens('one', 0)
  await tell(0)
  isUp = false
  await closeIncident(store, 'pots', NOW + 5 * MINUTE)
  for (let minute = 5; minute < 20; minute += 1) await tell(minute * MINUTE)
  isUp = true
  await opens('two', 20 * MINUTE)
  for (let minute = 20; minute < 60; minute += 1) await tell(minute * MINUTE)
  expect(told).toEqual([
    'Kiln: Pots (web) is failing',
    'Kiln: Pots (web) is failing',
    'Kiln: Pots (web): this alert ended, and another is open',
  ])
})

test.each(['the provider does not answer', 'the process is killed'])(
  'whatever changes once a message may have arrived, as %s, its id has one text',
  async (fault) => {
    let now = NOW
    const { incidents: store } = await openTestStore(undefined, () => now)
    const told: [id: string, text: string][] = []
    const channel = channelOf('webhook', async ({ id, incident: about, kind, at }) => {
      told.push([id, JSON.stringify([at, said(kind, about)])])
      // It fails again while the first attempt at the end is out.
      now += MINUTE
      if (id === 'alert.one.closed')
        await openIncident(store, incident({ id: 'two', cause: 'pots', openedAt: now, seenAt: now }))
      return { kind: 'unknown', reason: 'the connection broke' }
    })
    const tell = (by = store) =>
      tellDue(
        hostAt(() => now),
        by,
        [channel],
      )
    const during = async (minutes: number) => {
      for (const end = now + minutes * MINUTE; now < end; now += MINUTE) await tell()
    }
    await openIncident(store, incident({ cause: 'pots', reason: 'no answer' }))
    await during(3)
    await change(store, now, { seen: [{ cause: 'pots', reason: 'answers 500', affected: ['api'], at: now }] })
    await during(10)
    await closeIncident(store, 'pots', now)
    if (fault === 'the process is killed') {
      void tell({ ...store, settleAlerts: () => new Promise(() => {}) })
      await expect.poll(async () => (await store.find('two'))?.cause).toBe('pots')
    }
    await during(30)
    await closeIncident(store, 'pots', now)
    await during(90)
    const texts = Map.groupBy(new Map(told.map((one) => [one.join(' '), one])).values(), ([id]) => id)
    expect([...texts.keys()]).toEqual([
      'alert.one.opened',
      'alert.one.closed',
      'alert.two.opened',
      'alert.two.closed',
    ])
    for (const [id, versions] of texts) expect([id, versions.length]).toEqual([id, 1])
  },
)

test('an end that a full mailbox refuses is told once it has room, and one that is gone gets no more', async () => {
  for (const hardBounce of [false, true]) {
    let answer: SendOutcome = SENT
    const it = await telling(() => answer)
    await it.at(0)
    answer = { kind: 'permanent', reason: 'refused (552)', hardBounce }
    await closeIncident(it.store, 'mail', NOW)
    expect(await it.at(HOUR)).toBe(1)
    answer = SENT
    expect(await it.at(2 * HOUR)).toBe(hardBounce ? 0 : 1)
  }
})

test('an end that may have arrived is not repeated for ever', async () => {
  let answer: SendOutcome = SENT
  const it = await telling(() => answer)
  await it.at(0)
  answer = { kind: 'unknown', reason: 'the connection broke' }
  await closeIncident(it.store, 'mail', NOW)
  let tries = 0
  for (let hour = 1; hour < 7 * 24; hour += 1) tries += await it.at(hour * HOUR)
  expect(tries).toBe(8)
})

test('an unknown outcome counts as a failed attempt, so that no alert is repeated for ever', async () => {
  const it = await telling(() => ({ kind: 'unknown', reason: 'the connection broke' }))
  for (let n = 0; n < 8; n += 1) await it.at(n)
  expect(await it.at(0)).toBe(0)
  for (let n = 1; n < 12; n += 1) await it.at(n * 7 * HOUR)
  expect(await it.store.messages(['one'])).toContainEqual(
    expect.objectContaining({ kind: 'opened', outcome: 'failed', attempts: 8 }),
  )
})

test('a sent message and a permanently refused one are each tried under one id, and not again', async () => {
  const sent = await telling(() => SENT)
  expect(await sent.at(0, [])).toBe(0)
  expect(await sent.at(0)).toBe(1)
  expect(await sent.at(HOUR)).toBe(0)
  expect(sent.logged).toEqual([
    ['info', 'alert_sent', { incident: 'one', kind: 'opened', channel: 'webhook', attempt: 1 }],
  ])
  const refused = await telling(() => ({ kind: 'permanent', reason: 'gone', hardBounce: false }))
  expect([await refused.at(0), await refused.at(HOUR)]).toEqual([1, 0])
  expect(await refused.store.messages(['one'])).toMatchObject([{ outcome: 'failed', reason: 'gone' }])
})

test.each<[number | 'silence', SendOutcome]>([
  [200, { kind: 'sent', id: 'i' }],
  [204, { kind: 'sent', id: 'i' }],
  [302, { kind: 'transient', reason: 'the webhook answered 302', scope: 'message' }],
  [404, { kind: 'transient', reason: 'the webhook answered 404', scope: 'message' }],
  [410, { kind: 'permanent', reason: 'the webhook answered 410', hardBounce: true }],
  [500, { kind: 'transient', reason: 'the webhook answered 500', scope: 'message' }],
  ['silence', { kind: 'transient', reason: 'the webhook did not answer', scope: 'message' }],
])('a webhook that answers %s: %j', async (status, outcome) => {
  const asked: unknown[] = []
  let cancelled = false
  const cancel = () => {
    cancelled = true
  }
  const channel = webhookChannel(
    { now: () => NOW },
    {
      url: secret('https://ops.example.com/secret-path'),
      secret: secret('key'),
      send: async (url, init) => {
        const sentAt = new Headers(init?.headers).get('webhook-timestamp')
        asked.push([url, init?.method, init?.redirect, init?.signal?.aborted, sentAt])
        if (status === 'silence') throw new Error('https://ops.example.com/secret-path')
        const body = status === 204 ? null : new ReadableStream({ cancel })
        return new Response(body, { status })
      },
    },
    () => ({ title: 'A title', lines: ['A line'] }),
  )
  expect(channel.name).toBe('webhook')
  const at = NOW - HOUR
  const about = incident({ openedAt: at, seenAt: at })
  expect(await channel.tell({ id: 'i', kind: 'opened', incident: about, at })).toEqual(outcome)
  // Signed with the time of the attempt: a receiver refuses what is minutes old.
  const asks = ['https://ops.example.com/secret-path', 'POST', 'manual', false, String(NOW / 1000)]
  expect(asked).toEqual([asks])
  // A body that nobody reads would keep its connection.
  expect(cancelled).toBe(status !== 204 && status !== 'silence')
})

test('a test alert is resolved at PagerDuty, which would keep it open', async () => {
  const posted: unknown[] = []
  const url = secret('https://events.pagerduty.com/v2/enqueue')
  const send: typeof fetch = async (_, init) => {
    posted.push(JSON.parse(String(init?.body)))
    return new Response()
  }
  const title = () => ({ title: 'A title', lines: [] })
  const channel = webhookChannel({ now: () => NOW }, { url, secret: secret('key'), send }, title)
  expect(await channel.tell({ id: 'i', kind: 'test', incident: incident(), at: NOW })).toMatchObject({
    kind: 'sent',
  })
  expect(posted).toMatchObject([
    { event_action: 'trigger', dedup_key: 'one' },
    { event_action: 'resolve', dedup_key: 'one' },
  ])
})

test('an alert whose text cannot be made is an outcome on each channel, and nothing is opened for it', async () => {
  const to = { name: undefined, address: 'ops@example.com' }
  const fails = () => {
    throw new Error('a fault')
  }
  const channels = [
    webhookChannel(
      { now: () => NOW },
      { url: secret('https://ops.example.com/'), secret: secret('key'), send: fails },
      fails,
    ),
    mailChannel(fails, { to, lines: 3, patienceMs: MINUTE }, fails),
  ]
  for (const channel of channels)
    expect(await channel.tell({ id: 'i', kind: 'opened', incident: incident(), at: NOW })).toEqual({
      kind: 'not_composed',
      reason: 'the text of the alert could not be made',
    })
})

test('an alert by mail has the text as it is, the Date of what it is about, and a mailer that is closed after it', async () => {
  let closed = 0
  const sent: Mail[] = []
  const answers: (SendOutcome | 'throws')[] = [SENT, NO_ANSWER, 'throws']
  const to = { name: undefined, address: 'ops@example.com' }
  const channel = mailChannel(
    () => ({
      send: async (mail) => {
        sent.push(mail)
        const answer = answers.shift()
        if (answer === undefined || answer === 'throws') throw new Error('a fault')
        return answer
      },
      close: async () => {
        closed += 1
      },
    }),
    { to, lines: 3, patienceMs: 14 * MINUTE },
    () => ({ title: 'Mail <is> failing', lines: ['Cause: a & b', 'Next'] }),
  )
  const tell = () =>
    channel.tell({ id: 'alert.one.opened', kind: 'opened', incident: incident(), at: NOW + 5 })
  expect([await tell(), await tell()]).toEqual([SENT, NO_ANSWER])
  await expect(tell()).rejects.toThrow('a fault')
  expect([channel.name, channel.lines, channel.patienceMs, closed]).toEqual(['mail', 3, 14 * MINUTE, 3])
  const [mail] = sent
  expect(mail).toMatchObject({ template: 'alert', to, about: 'alert.one.opened', date: new Date(NOW + 5) })
  expect(mail?.compiled?.subject).toEqual(['Mail <is> failing'])
  expect(mail?.compiled?.text).toEqual(['Mail <is> failing\n\nCause: a & b\nNext\n'])
  const html = mail?.compiled?.html[0]
  expect(html).toContain('<h1>Mail &lt;is&gt; failing</h1><p>Cause: a &amp; b</p><p>Next</p>')
  expect(html).toContain('<title>Mail &lt;is&gt; failing</title>')
})

const plain = { label: 'Pots', isService: false, isHeartbeat: false, meaning: undefined, absent: 'no pots' }

test('advice for a known cause replaces the general advice for services, jobs and other probes', () => {
  expect(adviceFor('store', { ...plain, label: 'Store' })).toMatchObject({
    label: 'Store',
    command: 'platformctl db status',
    runbook: 'store-failing',
  })
  expect(adviceFor('lessons_late', plain)).toMatchObject({ label: 'Lessons', words: { is: 'are late' } })
  const other = adviceFor('pots', plain)
  expect(other).toMatchObject({ label: 'Pots', runbook: 'probe-failing' })
  expect(adviceFor('pots', { ...plain, isService: true }).means).toContain('asks Pots')
  expect(adviceFor('pots', { ...plain, isHeartbeat: true }).runbook).toBe('heartbeat-late')
  // A store without a free connection is not one that fails: its runbook says how to get more.
  expect(adviceFor('store_busy', plain).runbook).toBe('alerts')
  // A store in PostgreSQL is not on that disk.
  expect(adviceFor('disk_nearly_full', plain).means).toContain('an SQLite store takes nothing')
  // A stopped schedule need not hold up lessons: the removal of old records may be what fails.
  expect(adviceFor('schedule_stalled', plain).means).toMatch(
    /^lessons are late, or old records stay: .*schedule_failed/,
  )
})

test.each([
  ['pots', { meaning: 'Nothing is fired.' }, 'Nothing is fired'],
  ['pots', { meaning: 'is it off?' }, 'is it off?'],
  ['pots', {}, 'the platform works as without it (no pots)'],
  ['pots', { absent: undefined }, 'nothing that needs Pots works'],
  ['datastore', {}, 'the platform works as without it (no pots), and what it stores cannot be reached'],
  ['pots', { isService: true, meaning: 'not checked' }, 'nothing that asks Pots works'],
])('an alert about the probe %s with %j says: %s', (cause, about, means) => {
  expect(adviceFor(cause, { ...plain, ...about }).means).toBe(means)
})

test.each(['store', 'job_store', 'mail', 'payments', 'sharedstore', 'pots', ...Object.keys(CONDITIONS)])(
  'advice about %s has a meaning, an existing command and an existing runbook',
  (cause) => {
    const { label, means, command, runbook, words } = adviceFor(cause, plain)
    expect(label).toMatch(/^[A-Z]/)
    expect(means).toMatch(/^[a-z].{10}/)
    expect(command).toMatch(
      /^platformctl (?:db status|preflight|billing smoke|health|course status|mail queue|alert test|status)/,
    )
    expect(existsSync(`runbooks/${runbook}.md`)).toBe(true)
    // A condition is of the platform: “is failing” would say nothing of it.
    expect(words !== undefined).toBe(Object.hasOwn(CONDITIONS, cause))
    for (const one of Object.values(words ?? {})) expect(one).toMatch(/^[a-z].{3}/)
    if (words) expect([Object.keys(words), label === plain.label]).toEqual([['is', 'still', 'ended'], false])
    expect(runbook === 'probe-failing').toBe(cause === 'pots')
  },
)

const advice = adviceFor('pots', plain)
const said = (kind: MessageKind, parts: Partial<StoredIncident> = {}, cause = 'pots') =>
  alertText({
    incident: incident({ cause, ...parts }),
    kind,
    advice: cause === 'pots' ? advice : adviceFor(cause, plain),
    platform: 'Kiln',
    isService: (name) => ['web', 'api', 'agent'].includes(name),
  })

test('each kind of message says what is now so, and only an open incident asks for something', () => {
  expect(said('opened').title).toBe('Kiln: Pots (web) is failing')
  expect(said('reminder-1').title).toBe('Kiln: Pots (web) is still failing')
  expect(said('opened').lines.some((line) => /^Cause|^Also/.test(line))).toBe(false)
  for (const kind of ['opened', 'reminder-1'] as const)
    expect(said(kind, { affected: ['api'] }).lines).toContain('Also failing for this cause: api.')
  expect(said('opened', {}, 'lessons_late').title).toBe('Kiln: Lessons are late')
  expect(said('reminder-2', {}, 'lessons_late').title).toBe('Kiln: Lessons are still late')
  const closed = { closedAt: NOW + 2 * HOUR + 5 * MINUTE }
  expect(said('closed', closed)).toEqual({
    title: 'Kiln: Pots (web) works again',
    lines: [expect.stringMatching(/2 hours.*5 minutes.*2026-11-22 09:30 UTC/)],
  })
  const lasted = (ms: number) => said('closed', { seenAt: NOW + ms }).lines[0]
  expect([1000, 2000, MINUTE, 24 * HOUR, 48 * HOUR, 0].map(lasted)).toEqual(
    ['1 second', '2 seconds', '1 minute', '1 day', '2 days', 'less than a second'].map((length) =>
      expect.stringContaining(` ${length},`),
    ),
  )
  expect(said('closed', closed, 'lessons_late').title).toBe('Kiln: Lessons go out again')
  // It is closed ten minutes later, and the start after it may have followed at once.
  for (const cause of ['start_refused', 'half_configured'])
    expect(said('closed', { ...closed, seenAt: NOW + MINUTE }, cause).lines).toEqual([
      'The last start that was refused was at 2026-11-22 09:31 UTC.',
    ])
  expect(said('acknowledged', { acknowledgedBy: 'ada' }).title).toContain('by ada')
  expect(said('acknowledged').title).toContain('by somebody')
  expect(said('test').title).toBe('Kiln: test alert')
  const resolved = { ...closed, resolvedBy: 'ada\u202e\nl.', resolvedReason: 'the probe was removed' }
  expect(said('closed', resolved)).toMatchObject({
    title: 'Kiln: Pots (web): resolved by ada l.',
    lines: ['Reason: the probe was removed.', expect.stringContaining('lasted'), expect.any(String)],
  })
  for (const kind of ['closed', 'acknowledged', 'test'] as const)
    expect(said(kind, closed).lines.join()).not.toContain('platformctl alert ack')
})

test('the commands of an alert act on the daemon that sent it, in whatever folder they are pasted', () => {
  const places = { definition: '/srv/kiln.ts', envFiles: ['/etc/kiln.env'], dataFolder: '/var/lib/kiln' }
  const about = { incident: incident(), platform: 'Kiln', isService: () => false, places }
  const { lines } = alertText({ ...about, kind: 'opened', advice: adviceFor('store', plain) })
  const options = '--config /srv/kiln.ts --env-file /etc/kiln.env --data /var/lib/kiln'
  expect(lines).toEqual(
    expect.arrayContaining([
      `Start with: platformctl db status ${options}`,
      `Acknowledge: platformctl alert ack one ${options}`,
    ]),
  )
})

test('the end of an incident is sent though hundreds opened since and a week passed, and a silence only delays it', async () => {
  const it = await telling(() => SENT)
  expect(await it.at(0)).toBe(1)
  await closeIncident(it.store, 'mail', NOW)
  const opens = Array.from({ length: 300 }, (_, n) =>
    incident({ id: `later-${n}`, openedAt: NOW + n + 1, closedAt: NOW + n + 2 }),
  )
  await change(it.store, NOW, { opens })
  const week = 7 * 24 * HOUR
  await it.store.silence({ from: NOW + week, until: NOW + week + HOUR, reason: 'deploy', by: 'ci' })
  expect([await it.at(week), await it.at(week + HOUR), await it.at(week + HOUR)]).toEqual([0, 1, 0])
})

test('a cause that comes and goes for a day is heard of thrice, and then as often as one that lasts', async () => {
  const { incidents } = await openTestStore(undefined)
  let now = NOW
  const told: number[] = []
  const ends: number[] = []
  const channel = channelOf('webhook', async ({ kind }) => {
    if (kind === 'opened') told.push(Math.floor((now - NOW) / HOUR))
    else ends.push(now)
    return SENT
  })
  const host = hostAt(() => now)
  for (let n = 0; now < NOW + 24 * HOUR; n += 1) {
    await openIncident(incidents, incident({ id: `one-${n}`, openedAt: now, seenAt: now }))
    for (let minute = 0; minute < 9; minute += 3) {
      await tellDue(host, incidents, [channel])
      now += 3 * MINUTE
    }
    await closeIncident(incidents, 'mail', now)
    await tellDue(host, incidents, [channel])
    now += 2 * MINUTE
  }
  expect(told).toEqual([0, 0, 0, 4, 8, 12, 16, 20])
  expect(ends).toHaveLength(told.length)
})
