/** What one witness sees of the platform; `unknown` until it was reached once. */
export type View = 'reachable' | 'unreachable' | 'unknown'

/** An outage on which the majority agrees. One witness claims it, and alerts once no other claim is in its way. */
export interface Outage {
  readonly id: string
  /** The witness that alerts. */
  readonly by: string
  readonly phase: 'claimed' | 'open'
  /** When that witness could no longer reach the platform, in UTC milliseconds. */
  readonly since: number
}

/** The witness that may announce the end, by the id of each outage. */
type Closers = Readonly<Record<string, string>>

/** What a witness tells the others each round. */
export interface Vote {
  readonly name: string
  readonly view: View
  /** It has nobody to tell: another claims an outage if there is one. */
  readonly mute?: boolean
  readonly outage?: Outage | undefined
  readonly closers: Closers
  /** Ids of outages whose end was announced, the newest last. */
  readonly closed: readonly string[]
}

/** Kept over restarts; counts are of rounds in a row. */
export interface Voting extends Omit<Vote, 'name' | 'view' | 'mute'> {
  /** An outage whose end nobody can announce: those who might are gone. */
  readonly forgotten?: string | undefined
  readonly unclaimed: number
  /** The outage is over, for all who can be heard. */
  readonly clear: number
  /** The witness that alerts was not heard. */
  readonly silent: number
}

export const NOTHING_SEEN: Voting = { closers: {}, closed: [], unclaimed: 0, clear: 0, silent: 0 }

export interface Seen {
  readonly unreachable: readonly string[]
  readonly reachable: readonly string[]
  /** Those that vote and those that cannot be heard. */
  readonly configured: number
}

interface RoundInput extends Pick<Vote, 'view' | 'mute'>, Pick<Seen, 'configured'> {
  readonly self: string
  /** Of the others, one for each. */
  readonly heard: readonly Vote[]
  readonly before: Voting
  readonly since: number
  readonly newId: () => string
}

export interface Round {
  readonly after: Voting
  readonly announces?: 'open' | 'closed'
  readonly seen: Seen
}

/** Rounds after which the next in line does what another witness should have done. */
const PATIENCE = 4
const CLEAR_ROUNDS = 2
const FORGET_ROUNDS = 40
const ENDS_KEPT = 20

/**
 * One round: takes the votes heard in it, and says whether this witness announces the beginning or the end of an outage.
 * An outage needs the majority of the configured witnesses; of fewer than three, one is enough if no other that is heard
 * reaches the platform. Its end is announced by the witness that the majority grants it to, and no witness grants it
 * twice, so that a partition or a restart repeats no announcement; of fewer than three, by the one that announced it.
 * Compares no clocks: a vote counts for the round in which it was asked for.
 */
export function nextRound({ self, view, mute, heard, configured, before, since, newId }: RoundInput): Round {
  const votes = [{ name: self, view, mute }, ...heard].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const named = (wanted: View) => votes.flatMap((one) => (one.view === wanted ? [one.name] : []))
  const able = votes.flatMap((one) => (one.mute ? [] : [one.name]))
  const inLine = (names: readonly string[]) => {
    const telling = names.filter((name) => able.includes(name))
    return telling.length > 0 ? telling : names
  }
  const seen: Seen = { unreachable: named('unreachable'), reachable: named('reachable'), configured }
  const { unreachable, reachable } = seen
  const isMajority = (count: number) => count * 2 > configured
  const agreed =
    isMajority(unreachable.length) || (configured < 3 && unreachable.length > 0 && reachable.length === 0)
  // A stolen witness can neither end an outage that the majority sees, nor begin one that it does not.
  const ends = agreed ? [] : heard.flatMap((one) => one.closed)
  const closed = [...new Set([...ends, ...before.closed])].slice(-ENDS_KEPT)
  const known = knownOutage(self, before, heard, closed, agreed)
  const isHeard = known !== undefined && votes.some(({ name }) => name === known.by)
  const silent = known === undefined || isHeard || known.id !== before.outage?.id ? 0 : before.silent + 1
  const { closers, hasMajority } = grant(before.closers, heard, closed, configured)
  const none = { closed, closers, forgotten: before.forgotten, unclaimed: 0, clear: 0, silent: 0 }

  if (known === undefined || (known.phase === 'claimed' && silent > PATIENCE)) {
    const rank = inLine(unreachable).indexOf(self)
    if (!agreed || rank === -1) return { after: none, seen }
    if (before.unclaimed < rank * PATIENCE)
      return { after: { ...none, unclaimed: before.unclaimed + 1 }, seen }
    return { after: { ...none, outage: { id: newId(), by: self, phase: 'claimed', since } }, seen }
  }
  if (known.phase === 'claimed') {
    if (known.by !== self) return { after: { ...none, outage: known, silent }, seen }
    // It was visible for a round, so a claim that came first would have been heard by now.
    if (!agreed) return { after: none, seen }
    return { after: { ...none, outage: { ...known, phase: 'open' } }, announces: 'open', seen }
  }
  const clear = reachable.length > unreachable.length ? before.clear + 1 : 0
  const rank = inLine(votes.map(({ name }) => name)).indexOf(self)
  const isNext = known.by === self || (rank !== -1 && silent > (rank + 1) * PATIENCE)
  const closer =
    closers[known.id] ?? (isNext && clear >= CLEAR_ROUNDS && isMajority(votes.length) ? self : undefined)
  if (clear >= CLEAR_ROUNDS && (configured < 3 ? known.by === self : hasMajority(known.id, self)))
    return { after: { ...none, closed: [...closed, known.id].slice(-ENDS_KEPT) }, announces: 'closed', seen }
  if (clear >= FORGET_ROUNDS && !isHeard && closer !== self)
    return { after: { ...none, forgotten: known.id }, seen }
  const granted = closer === undefined ? closers : { ...closers, [known.id]: closer }
  return { after: { ...none, closers: granted, outage: known, clear, silent }, seen }
}

/** Grants each end that others have granted, and says who has the majority of the grants. */
function grant(own: Closers, heard: readonly Vote[], closed: readonly string[], configured: number) {
  const all = [own, ...heard.map(({ closers }) => closers)]
  const named = (id: string) => all.flatMap((one) => one[id] ?? [])
  const hasMajority = (id: string, name: string) =>
    named(id).filter((one) => one === name).length * 2 > configured
  const closers: Record<string, string> = {}
  for (const id of new Set(all.flatMap(Object.keys))) {
    const names = named(id)
    const [first] = names.toSorted()
    // All are split, so that none of them can have announced it: they turn to the first in line.
    const isSplit = names.length === configured && !names.some((name) => hasMajority(id, name))
    const closer = isSplit ? first : (own[id] ?? first)
    if (closer !== undefined && !closed.includes(id)) closers[id] = closer
  }
  return { closers: Object.fromEntries(Object.entries(closers).slice(-ENDS_KEPT)), hasMajority }
}

/** Whether pages say that the platform cannot be reached: until the votes are clear, not until a witness has announced the end. */
export const isOutage = ({ outage, clear }: Voting) => outage?.phase === 'open' && clear < CLEAR_ROUNDS

/** The outage to go on with: an own one that was announced, else what others announced, else the first in line of the claims. */
function knownOutage(
  self: string,
  { outage: own, forgotten }: Voting,
  heard: readonly Vote[],
  closed: readonly string[],
  agreed: boolean,
): Outage | undefined {
  const goesOn = [own, ...heard.map(({ outage }) => outage)]
    .filter((one) => one !== undefined)
    .filter(({ id }) => !closed.includes(id) && (agreed || id === own?.id))
  if (own?.by === self && own.phase === 'open' && goesOn.includes(own)) return own
  return goesOn
    .filter((one) => {
      if (one.by === self) return one === own
      // The witness that alerts knows best, whatever others remember.
      const by = heard.find(({ name }) => name === one.by)
      return by ? by.outage?.id === one.id : one.id !== forgotten
    })
    .toSorted((a, b) => (a.phase === b.phase ? (a.by < b.by ? -1 : 1) : a.phase === 'open' ? -1 : 1))[0]
}
