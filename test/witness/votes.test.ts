import { expect, test } from 'vitest'
import {
  isOutage,
  NOTHING_SEEN,
  nextRound,
  type View,
  type Vote,
  type Voting,
} from '../../src/witness/votes.ts'

/** Two failing rounds, a claim and its round; twice that, since witnesses see the first one at different times. */
const TOLD_WITHIN_ROUNDS = 8
/** The same where those first in line are gone: each of the others waits for its turn. */
const TOLD_IN_TURN_ROUNDS = 32

function dice(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e37_79b9) >>> 0
    return ((state ^ (state >>> 13)) >>> 0) % below
  }
}

/** Two rounds to see that it is over and two to be sure, a little out of step. */
const SHOWN_AFTER_ROUNDS = 6

interface Actor {
  readonly name: string
  running: boolean
  readonly mute: boolean
  streak: number
  view: View
  voting: Voting
  announced: { readonly kind: 'open' | 'closed'; readonly id: string; readonly round: number }[]
}

interface Story {
  readonly actors: readonly Actor[]
  /** Rounds in which the platform was down, by outage. */
  readonly outages: readonly { readonly from: number; readonly until: number; readonly quiet: boolean }[]
  readonly split: boolean
  readonly hasLiar: boolean
  /** Rounds at whose end the same majority had run and heard each other for as long as it takes to tell an outage. */
  readonly steady: ReadonlySet<number>
  /** Rounds in which an honest witness showed an outage. */
  readonly shown: ReadonlySet<number>
}

/** One history in virtual time: rounds out of step, outages, partitions, crashes and restarts, and a stolen witness. */
function story(seed: number): Story {
  const roll = dice(seed)
  const count = 1 + roll(5)
  const actors: Actor[] = Array.from({ length: count }, (_, index) => ({
    name: `w${index}`,
    running: true,
    streak: 0,
    view: 'reachable',
    // It has no channel: others tell, as soon as it tells them so.
    mute: index === 0 && seed % 3 === 0,
    voting: NOTHING_SEEN,
    announced: [],
  }))
  const rounds = 280
  const disturbed = roll(2) === 1
  const outages = [30 + roll(30), 130 + roll(30)].map((from) => ({
    from,
    until: from + 1 + roll(60),
    quiet: !disturbed,
  }))
  const minority = new Set<string>()
  let split = false
  const liar = !disturbed && count > 2 && roll(2) === 0 ? actors[roll(count)] : undefined
  const steady = new Set<number>()
  const shown = new Set<number>()
  let majority = ''
  let since = 0
  for (let round = 0; round < rounds; round += 1) {
    // In the end everything works again.
    const calm = !disturbed || round > 230
    if (calm) for (const actor of actors) actor.running = true
    if (calm) minority.clear()
    if (!calm && roll(40) === 0) {
      minority.clear()
      if (count > 2 && roll(2) === 1) {
        minority.add(actors[roll(count)]?.name ?? '')
        split = true
      }
    }
    const down = outages.some(({ from, until }) => round >= from && round < until)
    // Each asks at a moment of its own: the order within a round changes.
    const order = actors.map((actor) => ({ actor, at: roll(1000) })).toSorted((a, b) => a.at - b.at)
    for (const { actor } of order) {
      if (!calm && roll(120) === 0) {
        actor.running = !actor.running
        Object.assign(actor, { streak: 0, view: 'unknown' })
      }
      if (!actor.running) continue
      // One witness alone loses its own line now and then: that is no outage.
      const reached = !down && !(!calm && actor.name === 'w0' && count > 2 && round % 50 < 8)
      const now: View = reached ? 'reachable' : 'unreachable'
      actor.streak = now === actor.view ? 0 : actor.streak + 1
      if (actor.streak >= 2) Object.assign(actor, { view: now, streak: 0 })
      if (actor === liar) continue
      const heard = actors.flatMap((other): Vote[] =>
        other !== actor && other.running && minority.has(other.name) === minority.has(actor.name)
          ? [
              other === liar
                ? lie(liar.name, actors, roll)
                : { ...other.voting, name: other.name, view: other.view, mute: other.mute },
            ]
          : [],
      )
      const { after, announces } = nextRound({
        self: actor.name,
        view: actor.view,
        mute: actor.mute,
        heard,
        configured: count,
        before: actor.voting,
        since: 0,
        newId: () => `${actor.name}-${round}`,
      })
      const id = after.outage?.id ?? actor.voting.outage?.id ?? ''
      actor.voting = after
      if (announces) actor.announced.push({ kind: announces, id, round })
      if (isOutage(after)) shown.add(round)
    }
    const side = actors.filter(({ name, running }) => running && !minority.has(name))
    const now = side.length * 2 > count ? side.map(({ name }) => name).join() : ''
    if (now !== majority) since = round
    majority = now
    if (now !== '' && round - since >= TOLD_IN_TURN_ROUNDS) steady.add(round)
  }
  return { actors, outages, split, hasLiar: liar !== undefined, steady, shown }
}

/** What a stolen witness says: signed and well formed, and anything else. */
function lie(name: string, actors: readonly Actor[], roll: (below: number) => number): Vote {
  const ids = actors.flatMap(({ voting }) => (voting.outage ? [voting.outage.id] : []))
  const id = ids[roll(ids.length + 1)] ?? `${name}-lie-${roll(9)}`
  const other = actors[roll(actors.length)]?.name ?? name
  return {
    name,
    view: (['reachable', 'unreachable', 'unknown'] as const)[roll(3)] ?? 'unknown',
    outage: [undefined, { id, by: name, phase: roll(2) ? 'open' : 'claimed', since: 0 } as const][roll(2)],
    closers: roll(2) ? { [id]: other } : {},
    closed: roll(4) ? [] : [id],
  }
}

const announcedIn = ({ actors }: Story) =>
  actors.flatMap(({ announced }) => announced).toSorted((a, b) => a.round - b.round)

/** What is wrong with a history; nothing, as it should be. */
function faultsIn(it: Story): string[] {
  const all = announcedIn(it)
  const faults: string[] = []
  const isDuring = (round: number, { from, until }: Story['outages'][number]) =>
    round >= from && round <= until + 3
  const disturbed = it.outages.some(({ quiet }) => !quiet)
  for (const { kind, id, round } of all) {
    const same = all.filter((one) => one.id === id && one.kind === kind).length
    if (same > 1) faults.push(`${id} is ${kind} ${same} times`)
    const ends = all.some((one) => one.id === id && one.kind === 'closed')
    // A stolen witness can take the end upon itself, and keep it back.
    if (!ends && !it.hasLiar) faults.push(`${id} never ends`)
    if (kind === 'open' && !it.outages.some((one) => isDuring(round, one))) faults.push(`${id} is invented`)
  }
  for (const round of it.hasLiar ? it.shown : [])
    if (!it.outages.some(({ from, until }) => round >= from && round <= until + SHOWN_AFTER_ROUNDS))
      faults.push(`the page invents an outage in round ${round}`)
  for (const outage of it.outages) {
    const opened = all.filter(({ kind, round }) => kind === 'open' && isDuring(round, outage)).length
    const sides = it.split || (it.actors.length < 3 && disturbed) ? 2 : 1
    const least = !disturbed && !it.hasLiar && outage.until - outage.from >= TOLD_WITHIN_ROUNDS ? 1 : 0
    const told = outage.from + TOLD_IN_TURN_ROUNDS
    const isSilent = !all.some(
      ({ kind, id, round }) =>
        kind === 'open' &&
        round <= told &&
        !all.some((one) => one.id === id && one.kind === 'closed' && one.round < outage.from),
    )
    if (!it.hasLiar && told < outage.until && it.steady.has(told) && isSilent)
      faults.push(`the outage of round ${outage.from} is not announced`)
    if (opened > sides || opened < least)
      faults.push(`the outage of round ${outage.from} is announced ${opened} times`)
  }
  return faults
}

/** HISTORIES=10000 for a thorough run. */
const HISTORIES = Number(process.env.HISTORIES ?? 150)

test('no history invents an outage, and each outage that lasts is announced once and closed once', {
  timeout: 20_000 + HISTORIES * 60,
}, () => {
  const lasting = { quiet: 0, disturbed: 0 }
  for (let seed = 1; seed <= HISTORIES; seed += 1) {
    const it = story(seed)
    const faults = faultsIn(it)
    if (faults.length > 0) expect({ seed, faults }).toBeUndefined()
    for (const { from, until, quiet } of it.outages)
      if (until - from >= TOLD_WITHIN_ROUNDS) lasting[quiet ? 'quiet' : 'disturbed'] += 1
  }
  expect(Math.min(lasting.quiet, lasting.disturbed)).toBeGreaterThan(HISTORIES / 3)
})

const vote = (name: string, view: View, outage?: Vote['outage']): Vote => ({
  name,
  view,
  outage,
  closers: {},
  closed: [],
})
const round = (
  heard: readonly Vote[],
  configured: number,
  before = NOTHING_SEEN,
  view: View = 'unreachable',
) => nextRound({ self: 'b', view, heard, configured, before, since: 0, newId: () => 'b-1' })

test.each([
  ['the only one', [], 1, true],
  ['beside one that sees it too', [vote('c', 'unreachable')], 3, false],
  ['beside others with nobody to tell', [{ ...vote('c', 'unreachable'), mute: true }], 3, true],
] as const)('a witness with nobody to tell, %s, claims an outage: %s', (_, heard, configured, claims) => {
  const asked = { self: 'b', view: 'unreachable', mute: true, heard, configured, since: 0 } as const
  let voting = NOTHING_SEEN
  for (let rounds = 0; rounds < 20; rounds += 1)
    voting = nextRound({ ...asked, before: voting, newId: () => 'b-1' }).after
  expect(voting.outage !== undefined).toBe(claims)
})

test.each([
  ['alone', [], 1, true],
  ['one of two, and the other is silent', [], 2, true],
  ['one of two, and the other reaches it', [vote('c', 'reachable')], 2, false],
  ['two of three', [vote('c', 'unreachable')], 3, true],
  ['one of three, and the others are silent', [], 3, false],
  ['two of four', [vote('c', 'unreachable'), vote('d', 'reachable')], 4, false],
  ['two of five that never reached it', [vote('c', 'unknown'), vote('d', 'unknown')], 5, false],
] as const)(
  '%s: seen by that many of the configured, an outage is claimed: %s',
  (_, heard, configured, claims) => {
    const first = round(heard, configured)
    // Alerts name them: one that never reached the platform does not know.
    const cut = heard.filter(({ view }) => view === 'unreachable').map(({ name }) => name)
    expect(first.seen.unreachable).toEqual(['b', ...cut])
    expect(first.after.outage?.phase).toBe(claims ? 'claimed' : undefined)
    expect(first.announces).toBeUndefined()
    expect(round(heard, configured, first.after).announces).toBe(claims ? 'open' : undefined)
  },
)

test('the end of an outage is announced by the witness that the majority of the configured has granted it to', () => {
  const closers = { 'b-1': 'b' }
  const outage = { id: 'b-1', by: 'b', phase: 'open', since: 0 } as const
  const granting = ['c', 'd'].map((name) => ({ ...vote(name, 'reachable', outage), closers }))
  const before = { ...NOTHING_SEEN, outage, closers, clear: 9 }
  expect(round(granting.slice(1), 5, before, 'reachable').announces).toBeUndefined()
  expect(round(granting, 5, before, 'reachable').announces).toBe('closed')
  // Where each has granted it to itself, all turn to the first in line, but only when all are heard.
  const split = ['a', 'c'].map((name) => ({ ...vote(name, 'reachable', outage), closers: { 'b-1': name } }))
  expect(round(split, 3, before, 'reachable').after.closers).toEqual({ 'b-1': 'a' })
  expect(round(split, 4, before, 'reachable').after.closers).toEqual({ 'b-1': 'b' })
})

test('a new outage is claimed where another witness still remembers one that was given up', () => {
  const old = vote('c', 'unreachable', { id: 'a-1', by: 'a', phase: 'open', since: 0 })
  expect(round([old], 3).after.outage?.id).toBe('a-1')
  expect(round([old], 3, { ...NOTHING_SEEN, forgotten: 'a-1' }).after.outage?.id).toBe('b-1')
})

test('of two claims the first in line wins, and an announced one wins over both', () => {
  const mine = round([vote('c', 'unreachable')], 3).after
  const lower = vote('a', 'unreachable', { id: 'a-1', by: 'a', phase: 'claimed', since: 0 })
  const higher = vote('c', 'unreachable', { id: 'c-1', by: 'c', phase: 'claimed', since: 0 })
  expect(round([lower], 3, mine)).toMatchObject({ after: { outage: { by: 'a' } } })
  expect(round([higher], 3, mine)).toMatchObject({ announces: 'open' })
  const open = vote('c', 'unreachable', { id: 'c-1', by: 'c', phase: 'open', since: 0 })
  expect(round([open, lower], 3, mine).after.outage).toMatchObject({ by: 'c', phase: 'open' })
})

test('when the witness that announced an outage dies, another announces its end, and only one does', () => {
  const outage = { id: 'a-1', by: 'a', phase: 'open', since: 0 } as const
  const before = { ...NOTHING_SEEN, outage }
  const asked = { view: 'reachable', configured: 3, since: 0, newId: () => 'x' } as const
  const voteOf = (name: string, voting: Voting): Vote => ({ ...voting, name, view: 'reachable' })
  let [b, c]: [Voting, Voting] = [before, before]
  const announced: string[] = []
  for (let count = 0; count < 30; count += 1) {
    const first = nextRound({ ...asked, self: 'b', before: b, heard: [voteOf('c', c)] })
    b = first.after
    const second = nextRound({ ...asked, self: 'c', before: c, heard: [voteOf('b', b)] })
    c = second.after
    announced.push(...[first, second].flatMap(({ announces }) => announces ?? []))
  }
  expect(announced).toEqual(['closed'])
  const returned = nextRound({ ...asked, self: 'a', before, heard: [voteOf('b', b)] })
  expect(returned.after.outage).toBeUndefined()
  expect(returned.announces).toBeUndefined()
})
