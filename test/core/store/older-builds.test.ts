import { describe, expect, onTestFinished, test } from 'vitest'
import { createCatalog } from '../../../src/core/course/catalog.ts'
import { type CourseDefinition, NOTICES } from '../../../src/core/course/definition.ts'
import { DAY_MS } from '../../../src/core/durations.ts'
import { openMaintenance } from '../../../src/core/store/open.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { courseWith, START } from '../../support/course.ts'
import { type OldVersion, olderBuild } from '../../support/older-builds.ts'
import { outcomeOf } from '../../support/subscribers.ts'

const MINUTE = 60_000
const LEASE_MS = 90_000
const pottery: CourseDefinition = {
  id: 'pottery',
  title: 'Pottery',
  lessons: ['course-day-5', 'course-day-6'],
  cadence: { kind: 'every', ms: DAY_MS },
  spacingMs: 0,
  follow: 'start',
}
const claimed = (address: string) => ({ to: address, day: 1 })

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  /** People of the first course, one of pottery, and an older build beside. */
  async function beside(version: OldVersion, people = 1) {
    let now = START
    const it = await courseWith(people, {
      kind,
      catalog: createCatalog([...learning.courses, pottery]),
      leaseClock: () => now,
    })
    if (it.address === undefined) throw new TypeError('this store has an address')
    const old = olderBuild(it.address, version)
    onTestFinished(() => old.close())
    const table = kind === 'postgres' ? 'platformctl.subscription' : 'subscription'
    const enrol = (name: string, course = 'pottery') =>
      it.course.enrol({ spelling: `${name}@example.com`, identity: `${name}@example.com`, course })
    return {
      ...it,
      old,
      table,
      enrol,
      now: () => now,
      pass: (ms: number) => {
        now += ms
        it.pass(ms)
      },
      claimDue: (call: string) =>
        it.store.course.claimDue({ now, limit: 10, retries: 0, leaseMs: LEASE_MS, call }),
      find: async (name: string, course?: string) => {
        const found = await it.course.find(`${name}@example.com`, course)
        if (found === undefined) throw new TypeError(`${name} was enrolled`)
        return found
      },
    }
  }

  test('version 0.1.0 sends the first course, and leaves other courses and subscribers of incidents to this build', async () => {
    const it = await beside('0.1.0')
    await it.enrol('ada')
    await it.old.run(
      `INSERT INTO ${it.table} (id, identity, person, course, course_version, lessons, address, state, enrolment, created_at, confirmed_at, next_attempt_at)
       VALUES ('visitor', 'eve@example.com ${NOTICES}', 'eve@example.com', '${NOTICES}', '0', 1, 'eve@example.com', 'confirmed', 1, ${START}, ${START}, ${START})`,
    )
    expect(await it.old.dispatch('old call', it.now())).toMatchObject([claimed('p0@example.com')])
    expect(await it.find('ada')).toMatchObject({ sentDays: [], claimedAt: undefined, nextAttemptAt: START })
    expect(await it.find('eve')).toMatchObject({ sentDays: [], claimedAt: undefined })
    await it.old.run(`DELETE FROM ${it.table} WHERE id = 'visitor'`)
    expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ sent: 1 })
    expect(it.messages.map(({ key }) => key)).toEqual([expect.stringMatching(/^pottery-1\./)])
  })

  test('version 0.2.0 goes on sending every course, and understands a store after a rollback', async () => {
    const it = await beside('0.2.0')
    await it.enrol('ada')
    const sent = await it.old.dispatch('old call', it.now())
    expect(sent.toSorted((a, b) => a.to.localeCompare(b.to))).toMatchObject([
      claimed('ada@example.com'),
      claimed('p0@example.com'),
    ])
    expect((await it.find('ada')).sentDays).toEqual([1])
  })

  test('what version 0.2.0 publishes about incidents is mailed by this build, once, and by no other', async () => {
    const it = await beside('0.2.0', 0)
    await it.enrol('eve', NOTICES)
    const course = it.open(it.store.course, {
      more: {
        notices: {
          isSilent: async () => false,
          slots: ({ subject }) => ({
            title: subject,
            ...{ text: 'text', when: 'when', statusUrl: 'https://www.example.com/' },
          }),
        },
      },
    })
    await it.store.incidents.announce(
      { id: 'a1', text: 'Slow', from: START, until: undefined, by: 'ops' },
      START,
    )
    expect(await course.deliverMessages()).toBe(1)
    const schema = kind === 'postgres' ? 'platformctl.' : ''
    await it.old.run(
      `INSERT INTO ${schema}announcement (id, text, from_at, who) VALUES ('a2', 'Slower', ${START}, 'ops')`,
    )
    await it.old.run(
      `INSERT INTO ${schema}notice (seq, subject, kind, at, facts) VALUES (2, 'a2', 'announced', ${START}, '{"from":1}')`,
    )
    await it.old.run(
      `UPDATE ${it.table} SET lessons = 2, due_at = ${START}, next_attempt_at = ${START} WHERE course = '${NOTICES}'`,
    )
    expect(await it.old.dispatch('old call', it.now())).toEqual([])
    await it.store.incidents.follow({
      ...{ now: START, channels: [], visitorsHear: () => true },
      decide: () => ({}),
    })
    expect([await course.deliverMessages(), await course.deliverMessages()]).toEqual([1, 0])
    expect(it.messages.map(({ subject }) => subject)).toEqual(['a1', 'a2'])
    if (it.address === undefined) throw new TypeError('this store has an address')
    const maintenance = await openMaintenance(it.address)
    onTestFinished(() => maintenance.close())
    expect(await maintenance.verify(it.now())).toMatchObject({ ok: true, faults: [] })
  })

  test('a row that needs a later build is left alone by every earlier one, this one too, and their calls end', async () => {
    const it = await beside('0.2.0', 2)
    await it.old.run(`UPDATE ${it.table} SET needs = 2 WHERE id = 'person-0'`)
    expect(await it.old.dispatch('old call', it.now())).toMatchObject([claimed('p1@example.com')])
    await it.old.run(`UPDATE ${it.table} SET needs = 99 WHERE id = 'person-0'`)
    expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ processed: 0, remaining: 1 })
    await it.old.run(`UPDATE ${it.table} SET needs = 2 WHERE id = 'person-0'`)
    expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ sent: 1, remaining: 0 })
  })

  test('an older build whose claim was refused does not send when this build claims the same row', async () => {
    const it = await beside('0.1.0', 0)
    await it.enrol('ada')
    const sent = await it.old.dispatch('old call', it.now(), async () => {
      expect(await it.claimDue('new call')).toHaveLength(1)
    })
    expect(sent).toEqual([])
  })

  test('version 0.1.0 does not take over a lesson that this build is sending to somebody who left and came back', async () => {
    const it = await beside('0.1.0')
    const [claim] = await it.claimDue('new call')
    if (claim === undefined) throw new TypeError('a lesson is due')
    const link = { id: claim.id, enrolment: claim.enrolment, now: it.now() }
    await it.store.course.unsubscribe(link)
    await it.store.course.undoUnsubscribe(link)
    it.pass(MINUTE)
    expect(await it.old.dispatch('old call', it.now())).toEqual([])
    await it.store.course.keep({ claims: [claim], call: 'new call', now: it.now(), leaseMs: LEASE_MS })
    it.pass(MINUTE)
    expect(await it.old.dispatch('another old call', it.now())).toEqual([])
    await it.store.course.settle([outcomeOf(claim, it.now(), { nextAttemptAt: START + DAY_MS })])
    expect(await it.find('p0')).toMatchObject({ sentDays: [1], nextAttemptAt: START + DAY_MS })
  })

  test('version 0.1.0 takes over what a process of this build left behind a day ago, so that a rollback loses nothing', async () => {
    const it = await beside('0.1.0')
    expect(await it.claimDue('a call that died')).toHaveLength(1)
    it.pass(DAY_MS + MINUTE)
    expect(await it.old.dispatch('old call', it.now())).toMatchObject([claimed('p0@example.com')])
  })

  test('a claim of version 0.1.0 on a row with an older lease is not taken over while it lasts', async () => {
    const it = await beside('0.1.0')
    expect(await it.claimDue('a call that died')).toHaveLength(1)
    it.pass(DAY_MS + MINUTE)
    expect(await it.old.claim({ now: it.now(), lease: 0, call: 'old call', limit: 10 })).toHaveLength(1)
    it.pass(MINUTE)
    expect(await it.claimDue('new call')).toEqual([])
    it.pass(MINUTE)
    expect(await it.claimDue('new call')).toHaveLength(1)
  })

  test.each(['0.1.0', '0.2.0'] as const)(
    'of a row that version %s and this build claim in turn, one is the holder',
    async (version) => {
      const it = await beside(version)
      const holders = () => it.old.run(`SELECT holder, claimed_by FROM ${it.table}`)
      await it.old.claim({ now: it.now(), lease: it.now(), call: 'old call', limit: 10 })
      expect(await holders()).toEqual([{ holder: null, claimed_by: 'old call' }])
      it.pass(2 * MINUTE)
      expect(await it.claimDue('new call')).toHaveLength(1)
      expect(await holders()).toEqual([{ holder: 'new call', claimed_by: null }])
      it.pass(DAY_MS + MINUTE)
      await it.old.claim({ now: it.now(), lease: it.now(), call: 'old call', limit: 10 })
      expect(await holders()).toEqual([{ holder: null, claimed_by: 'old call' }])
    },
  )

  test('this build ends the name of an older call also on a row that is free', async () => {
    const it = await beside('0.2.0')
    await it.old.dispatch('old call', it.now())
    it.pass(DAY_MS)
    expect(await it.claimDue('new call')).toHaveLength(1)
    expect(await it.old.run(`SELECT holder, claimed_by FROM ${it.table}`)).toEqual([
      { holder: 'new call', claimed_by: null },
    ])
  })

  test('which lessons somebody had is still true after an older build has ended their course early, or begun it anew', async () => {
    const it = await beside('0.2.0')
    const set = (columns: string) => it.old.run(`UPDATE ${it.table} SET ${columns}`)
    await set(
      `sent_days = '[1,2]', sent_lessons = '["a","b"]', needs = 2, lessons = 3, next_attempt_at = NULL`,
    )
    await set('lessons = 2')
    expect(await it.find('p0')).toMatchObject({ promised: 3, sentLessons: ['a', 'b'] })
    await set(`enrolment = 2, sent_days = '[]', next_attempt_at = ${it.now()}`)
    const anew = { enrolment: 2, promised: undefined, sentLessons: undefined, needs: 0 }
    expect(await it.find('p0')).toMatchObject(anew)
  })

  test('people confirm, leave, come back and are erased through an older build as before', async () => {
    const it = await beside('0.1.0', 2)
    await it.enrol('ada')
    const { id } = await it.find('ada')
    const set = (columns: string, where: string) =>
      it.old.run(`UPDATE ${it.table} SET ${columns} WHERE ${where}`)
    await set(
      `state = 'unsubscribed', unsubscribed_at = ${it.now()}, next_attempt_at = NULL, fence = fence + 1`,
      `id = '${id}'`,
    )
    expect(await it.find('ada')).toMatchObject({ state: 'unsubscribed', nextAttemptAt: undefined })
    await set(
      `state = 'confirmed', unsubscribed_at = NULL, next_attempt_at = ${it.now()}, fence = fence + 1`,
      `id = '${id}'`,
    )
    expect(await it.find('ada')).toMatchObject({ state: 'confirmed', nextAttemptAt: it.now() })
    await it.old.run(`DELETE FROM ${it.table} WHERE id = 'person-1'`)
    expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ sent: 2 })
  })
})
