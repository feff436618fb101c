import { expect, test } from 'vitest'
import { readSettings, type Settings } from '../../../src/core/env/settings.ts'
import type { HealthReport, ProbeState } from '../../../src/core/health/probe.ts'
import type { Prerequisites } from '../../../src/core/health/verdict.ts'
import { followRound, type Streaks } from '../../../src/core/incidents/causes.ts'
import { prerequisitesOf } from '../../../src/core/incidents/prerequisites.ts'
import { learning } from '../../../src/presets/learning/platform.ts'

const report = (service: string, states: Readonly<Record<string, ProbeState>>): HealthReport => ({
  service,
  state: Object.values(states).includes('failing') ? 'failing' : 'ok',
  build: null,
  startedAt: '',
  time: '',
  latencyMs: 1,
  probes: Object.fromEntries(
    Object.entries(states).map(([probe, state]) => [
      probe,
      { state, checked: true, reason: `${probe} reason` },
    ]),
  ),
})

const causesOf = (reports: readonly HealthReport[], prerequisites?: Prerequisites) =>
  followRound({ streaks: new Map(), reports, open: [], prerequisites }).failing

test('names a service that fails because of another beside the cause, even over two steps', () => {
  expect(
    causesOf([
      report('web', { api: 'ok', agent: 'failing' }),
      report('agent', { api: 'failing' }),
      report('api', { job_store: 'failing' }),
    ]),
  ).toEqual([{ cause: 'job_store', service: 'api', reason: 'job_store reason', affected: ['web', 'agent'] }])
})

test('services that fail because of each other are both reported, without a loop', () => {
  const causes = causesOf([report('web', { api: 'failing' }), report('api', { web: 'failing' })])
  expect(causes.length).toBeGreaterThan(0)
})

test('forty services that fail for one cause are one cause that lists them', () => {
  const services = Array.from({ length: 40 }, (_, index) => `shop-${index}`)
  const [cause, ...others] = causesOf(services.map((name) => report(name, { gateway: 'failing' })))
  expect(others).toEqual([])
  expect(cause).toMatchObject({ cause: 'gateway', service: 'shop-0' })
  expect(cause?.affected).toEqual(services.slice(1))
})

test('a name depends on all that its service, each of its probes and every probe of that name depend on', () => {
  const probe = (name: string, service: string, ...on: string[]) => ({ name, service, dependsOn: () => on })
  const platform = {
    services: [{ name: 'api', dependsOn: ['store'] }],
    probes: [
      probe('kiln', 'api', 'gateway'),
      probe('kiln', 'web', 'mail'),
      probe('oven', 'api', 'bookings', 'api'),
    ],
  }
  const needs = prerequisitesOf(platform, {} as Settings)
  expect(needs.get('api')).toEqual(new Set(['store', 'gateway', 'bookings']))
  expect(needs.get('kiln')).toEqual(new Set(['gateway', 'mail']))
  // Jobs are in the store, unless they have one of their own.
  const jobs = (env: Record<string, string>) =>
    prerequisitesOf(learning, readSettings(learning, env)).get('job_store')?.has('store')
  expect([jobs({}), jobs({ JOB_STORE_URL: 'sqlite:jobs.sqlite' })]).toEqual([true, undefined])
})

const NEEDS = new Map([
  ['kiln', new Set(['bookings', 'store'])],
  ['bookings', new Set(['store'])],
])

test('what depends on a failing probe or service is listed under the root cause, even over two steps', () => {
  const causes = (...reports: HealthReport[]) =>
    causesOf(reports, NEEDS).map(({ cause, affected }) => [cause, affected])
  expect(
    causes(report('web', { bookings: 'failing', store: 'failing' }), report('api', { kiln: 'failing' })),
  ).toEqual([['store', ['bookings', 'api', 'kiln']]])
  // Also while the one between them says that it is well.
  expect(causes(report('web', { bookings: 'ok', store: 'failing', kiln: 'failing' }))).toEqual([
    ['store', ['kiln']],
  ])
  // A service that fails itself explains what depends on it.
  expect(causes(report('bookings', { queue: 'failing' }), report('web', { kiln: 'failing' }))).toEqual([
    ['queue', ['web', 'kiln']],
  ])
  expect(causes(report('web', { mail: 'failing', kiln: 'failing' }))).toEqual([
    ['mail', []],
    ['kiln', []],
  ])
  expect(causes(report('web', { store: 'degraded', kiln: 'failing' }))).toEqual([['kiln', []]])
})

/** The causes that each round opens and closes. An open cause stays open until it closes. */
function follow(
  rounds: readonly (readonly HealthReport[])[],
  more: Partial<Parameters<typeof followRound>[0]> = {},
) {
  let streaks: Streaks = new Map()
  const open = [...(more.open ?? [])]
  return rounds.map((reports) => {
    const followed = followRound({ ...more, streaks, reports, open })
    streaks = followed.streaks
    for (const cause of followed.closes) open.splice(open.indexOf(cause), 1)
    const opens = followed.opens.map(({ cause }) => cause)
    open.push(...opens)
    return { opens, closes: followed.closes }
  })
}

const story = (followed: ReturnType<typeof follow>) =>
  followed
    .flatMap(({ opens, closes }, round) => [
      ...closes.map((cause) => `${cause} closes in ${round}`),
      ...opens.map((cause) => `${cause} opens in ${round}`),
    ])
    .join(', ')

/** What the probe of mail said in each round: it fails, is degraded, is well, or nobody looked. */
const mailOver = (rounds: string, open: string[] = []) => {
  const said = { f: 'failing', d: 'degraded', o: 'ok' } as const
  const reports = [...rounds].map((letter) => [
    letter === '.'
      ? report('api', { circuit: 'ok' })
      : report('web', { mail: said[letter as keyof typeof said] }),
  ])
  return story(follow(reports, { open }))
}

test.each([
  ['fff', 'mail opens in 1'],
  ['fofo', ''],
  ['ffofoo', 'mail opens in 1, mail closes in 5'],
  ['ddd', ''],
  ['ff..oo', 'mail opens in 1, mail closes in 5'],
  ['f.f.o.o', 'mail opens in 2, mail closes in 6'],
])('a probe, round by round %s: %s', (rounds, expected) => {
  expect(mailOver(rounds)).toBe(expected)
})

test('after a restart an open incident still needs two good rounds to close, and is not opened anew', () => {
  expect([mailOver('ff', ['mail']), mailOver('oo', ['mail'])]).toEqual(['', 'mail closes in 1'])
})

test('a cause that goes on after an operator resolved its incident opens another one two rounds later', () => {
  let streaks: Streaks = new Map()
  const round = (open: readonly string[]) => {
    const followed = followRound({ streaks, open, reports: [report('web', { mail: 'failing' })] })
    streaks = followed.streaks
    return followed.opens.map(({ cause }) => cause)
  }
  expect([round([]), round([]), round(['mail'])]).toEqual([[], ['mail'], []])
  expect([round([]), round([]), round(['mail'])]).toEqual([[], ['mail'], []])
})

const stateOf = (letter = '-') => (letter === 'f' ? 'failing' : 'ok')

test.each([
  // store and kiln in each round
  ['ff ff ff oo oo', 'store opens in 1, store closes in 4'],
  ['of ff ff ff oo oo', 'store opens in 2, store closes in 5'],
  ['ff ff of oo oo', 'store opens in 1, store closes in 3'],
  ['ff ff of of of oo oo', 'store opens in 1, store closes in 3, kiln opens in 3, kiln closes in 6'],
  ['of of ff ff oo oo', 'kiln opens in 1, store opens in 3, kiln closes in 5, store closes in 5'],
  ['of of ff ff fo fo fo', 'kiln opens in 1, store opens in 3, kiln closes in 5'],
  ['of of ff ff of of oo oo', 'kiln opens in 1, store opens in 3, store closes in 5, kiln closes in 7'],
  // One that began to fail a round earlier, and works again a round later, raises no alert either.
  ['of ff ff of oo oo', 'store opens in 2, store closes in 4'],
  // A cause that fails every other time never has an incident, and hides nothing.
  ['of ff of ff of', 'kiln opens in 2'],
])('a probe and the store that it needs, %s: %s', (rounds, expected) => {
  const reports = rounds
    .split(' ')
    .map(([store, kiln]) => [report('web', { store: stateOf(store), kiln: stateOf(kiln) })])
  expect(story(follow(reports, { prerequisites: NEEDS }))).toBe(expected)
})

/** What each round opens where another process checks a probe. */
const opensBeside = (elsewhere: string, reports: readonly HealthReport[]) =>
  follow(
    reports.map((one) => [one]),
    { prerequisites: NEEDS, isCheckedElsewhere: (name) => name === elsewhere },
  ).map(({ opens }) => opens)

test('a failure counts on while its cause still waits for what another process checks', () => {
  const rounds = [...'ooffo'].map((letter) => report('web', { bookings: stateOf(letter), kiln: 'failing' }))
  expect(opensBeside('store', rounds)).toEqual([[], [], [], [], ['kiln']])
})

test('what depends on a probe that only another process checks waits one round more for its cause', () => {
  const rounds = Array.from({ length: 3 }, () => report('shop', { kiln: 'failing' }))
  expect(opensBeside('store', rounds)).toEqual([[], [], ['kiln']])
  expect(opensBeside('mail', rounds)).toEqual([[], ['kiln'], []])
})
