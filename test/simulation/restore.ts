import { mkdirSync, renameSync, rmdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { FIRST_COURSE } from '../../src/core/course/definition.ts'
import type { Claim } from '../../src/core/course/subscription.ts'
import { DAY_MS } from '../../src/core/durations.ts'
import type { Core } from './core.ts'
import { scratchFolder } from './hand.ts'
import { seeded } from './seeded.ts'
import type { Witness } from './witness.ts'

const PEOPLE = 24
const STEPS = 100
const KEY = 'kept in the store'

interface Person {
  readonly address: string
  readonly id: string
  enrolment: number
  state: 'new' | 'in' | 'left' | 'suppressed' | 'erased'
  /** Lessons of the enrolment that were recorded as sent. */
  sent: number
  /** What the backup has of them. */
  backup: { readonly enrolment: number; readonly sent: number } | undefined
}

/**
 * People come, get lessons, leave, return, are suppressed and erased around a backup, which is then put back; in some
 * scenarios nobody can write the journal for a while, or it is lost. Afterwards a lesson is due to everybody who is still in the
 * enrolment of the backup, and to nobody else. Both stores apply one rule; this runs it on SQLite.
 */
export async function simulateRestore(input: {
  readonly core: Core
  readonly seed: number
  readonly start: number
  readonly witness: Pick<Witness, 'violation' | 'note'>
}): Promise<void> {
  const { core, seed, start, witness } = input
  const random = seeded(seed ^ 0x0bac)
  const folder = await scratchFolder()
  const file = path.join(folder, 'platform.sqlite')
  const address = { kind: 'sqlite', file } as const
  const from = path.join(folder, 'backup.sqlite')
  const journal = path.join(folder, 'platform-journal.jsonl')
  const course = FIRST_COURSE
  const lessons = random.between(5, 30)
  const begin = ({ confirmedAt }: { readonly confirmedAt: number }) => ({ dueAt: confirmedAt, lessons })
  const people = Array.from(
    { length: PEOPLE },
    (_, n): Person => ({
      address: `b${n}@example.com`,
      id: `id-b${n}`,
      enrolment: 0,
      state: 'new',
      sent: 0,
      backup: undefined,
    }),
  )
  let store = await core.openStore(address)
  await store.getOrCreate('address_key', () => KEY)
  let now = start
  let calls = 0

  const claim = (): Promise<readonly Claim[]> => {
    calls += 1
    return store.course.claimDue({ now, limit: 1000, retries: 1000, leaseMs: 1000, call: `call ${calls}` })
  }
  /** Every lesson that is due is sent and recorded. */
  async function send(): Promise<void> {
    const claims = await claim()
    await store.course.settle(
      claims.map((one) => ({
        claim: one,
        now,
        sent: true,
        nextAttemptAt: one.day < lessons ? now + DAY_MS : undefined,
        failures: 0,
        problem: undefined,
        end: false,
      })),
    )
    for (const one of people) one.sent = claims.find(({ id }) => id === one.id)?.day ?? one.sent
  }
  async function confirm(one: Person): Promise<void> {
    const tokenHash = `token ${one.address} ${now}`
    await store.course.requestConfirmation({ course, identity: one.address, ...one, tokenHash, now })
    await store.course.confirm({ begin, tokenHash, now })
    const found = await store.course.findById(one.id)
    if (found?.state === 'confirmed') Object.assign(one, { state: 'in', enrolment: found.enrolment, sent: 0 })
  }
  async function leave(one: Person): Promise<void> {
    await store.course.unsubscribe({ ...one, now })
    one.state = 'left'
  }
  async function undo(one: Person): Promise<void> {
    await store.course.undoUnsubscribe({ ...one, now })
    if ((await store.course.findById(one.id))?.state === 'confirmed') one.state = 'in'
  }
  async function erase(one: Person): Promise<void> {
    const suppressionHash = core.suppressionHash(KEY, one.address)
    const person = { identity: one.address, spellings: [one.address], recipients: [] }
    await store.course.erase({ ...person, suppressionHash, now })
    one.state = 'erased'
  }
  async function suppress(one: Person): Promise<void> {
    const suppression = { cause: 'complaint', at: now, source: 'ses', reason: 'spam' } as const
    await store.feedback.apply([core.suppressionChange(one.address, suppression, () => [])], now)
    one.state = 'suppressed'
  }
  const acts: Record<Person['state'], readonly [Act, ...Act[]]> = {
    new: [confirm],
    in: [send, send, send, send, leave, leave, random.oneIn(2) ? erase : suppress],
    left: [confirm, confirm, undo, undo, erase],
    suppressed: [send],
    erased: [send],
  }
  type Act = (one: Person) => Promise<void>

  async function backUp(to: string): Promise<void> {
    const maintenance = await core.openMaintenance(address)
    await maintenance.backup(to, now)
    await maintenance.close()
  }
  const takeJournalAway = () => {
    renameSync(journal, `${journal}.aside`)
    mkdirSync(journal)
  }
  const giveJournalBack = () => {
    rmdirSync(journal)
    renameSync(`${journal}.aside`, journal)
  }

  const backupAt = random.between(20, STEPS - 20)
  const later = random.between(backupAt + 1, STEPS - 10)
  const harm = random.pick(['spoiled', 'lost', 'none'])
  const [spoiledAt, lostAt] = [harm === 'spoiled' ? later : undefined, harm === 'lost' ? later : undefined]
  for (let step = 0; step < STEPS; step += 1) {
    // Further apart than two confirmations of one address must be.
    now += random.between(DAY_MS / 8, DAY_MS)
    if (step === backupAt) {
      await backUp(from)
      for (const one of people) one.backup = one.state === 'new' ? undefined : { ...one }
    }
    if (step === spoiledAt) takeJournalAway()
    if (step - 5 === spoiledAt) giveJournalBack()
    if (step === lostAt) {
      // The next backup begins it again, with what the rows say: as on a store that keeps none.
      await rm(journal)
      await backUp(path.join(folder, 'next.sqlite'))
    }
    const one = random.pick(people as [Person, ...Person[]])
    await random.pick(acts[one.state])(one)
  }
  await store.close()
  const takesRecords = random.oneIn(2)
  now += 1000
  const { repeats, taken } = await core.restoreStore(address, {
    from,
    force: true,
    now,
    sentFrom: takesRecords ? file : undefined,
  })
  store = await core.openStore(address)
  now += 30 * DAY_MS
  const due = new Map((await claim()).map((one) => [one.address, one.day]))
  await store.close()
  await rm(folder, { recursive: true, force: true })

  let since = 0
  for (const one of people) {
    const { state, backup, sent, enrolment } = one
    const isSame = state === 'in' && backup?.enrolment === enrolment
    if (isSame) since += sent - backup.sent
    const known = takesRecords ? sent : (backup?.sent ?? 0)
    const expected = isSame && known < lessons ? known + 1 : undefined
    const found = due.get(one.address)
    if (found === expected) continue
    const about = `${one.address}, who is ${state}: lesson ${found}, not ${expected}`
    if (expected === undefined) witness.violation('a restore mails somebody who gets no lesson', about)
    else if (found === undefined) witness.violation('a restore forgets somebody who stayed', about)
    else witness.violation('after a restore a lesson is repeated or skipped', about)
  }
  const said = takesRecords ? { repeats: 0, taken: since } : { repeats: since, taken: 0 }
  if (repeats !== said.repeats || taken !== said.taken)
    witness.violation('a restore counts its lessons wrong', JSON.stringify({ repeats, taken, said }))
  witness.note('', `restored: ${due.size} lessons due, ${since} sent since the backup`)
}
