import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { HOUR_MS } from '../../../src/core/durations.ts'
import { NOW, RECORDS } from '../../support/accounts.ts'
import { addressOf, openTestStore, postgresServer, STORES } from '../../support/stores.ts'

async function storeWithRecords(kind: (typeof STORES)[number], records = RECORDS) {
  const address = await addressOf(kind)
  const store = await openTestStore(address)
  if (address?.kind === 'postgres')
    await (await postgresServer()).query(address.url.reveal(), `SET search_path = platformctl; ${records}`)
  if (address?.kind === 'sqlite') {
    const beside = new Database(address.file)
    beside.exec(records)
    beside.close()
  }
  return store
}

describe.each(STORES.filter((kind) => kind !== 'memory'))('the directory on %s', (kind) => {
  test('gives a record only to its owner', async () => {
    const { directory } = await storeWithRecords(kind)
    const lab = {
      address: 'grace@example.org',
      organisation: 'The lab',
      url: '/invites/open?k=1',
      locked: false,
    }
    expect(await directory.findInvite({ id: 'open', admin: 'ada' })).toEqual(lab)
    expect(await directory.findInvite({ id: 'unpaid', admin: 'ada' })).toMatchObject({ locked: true })
    expect(await directory.findLoginRequest({ id: 'fresh', now: NOW })).toEqual({
      address: 'alan@example.org',
      url: 'https://login.example.com/?once=1',
    })
    expect(await directory.findPassedExam({ id: 'passed', subject: 'ada' })).toEqual({
      exam: 'Gates & wires',
      scorePercent: 87,
      url: '/exams/passed',
    })
    const none = await Promise.all([
      directory.findInvite({ id: 'open', admin: 'eve' }),
      directory.findInvite({ id: 'closed', admin: 'ada' }),
      directory.findInvite({ id: `open' OR '1'='1`, admin: 'ada' }),
      directory.findLoginRequest({ id: 'old', now: NOW }),
      directory.findLoginRequest({ id: 'fresh', now: NOW + 1 }),
      directory.findPassedExam({ id: 'failed', subject: 'ada' }),
      directory.findPassedExam({ id: 'other', subject: 'ada' }),
    ])
    expect(none).toEqual(Array(7).fill(undefined))
  })
})

describe.each(STORES.filter((kind) => kind !== 'memory'))('an erasure on %s', (kind) => {
  test('finds the address in capitals, also those of letters beyond ASCII, and takes the records of nobody else', async () => {
    const rows = `INSERT INTO login_request VALUES ('l1', 'Ada@BÜCHER.example', '/l', 1), ('l2', 'ada@zürich.example', '/l', 1), ('l3', ' ADA@Example.com ', '/l', 1),
      ('l4', '${'ada@bücher.example'.normalize('NFD')}', '/l', 1)`
    const { course } = await storeWithRecords(kind, rows)
    for (const [related, ...spellings] of [
      [2, 'ada@xn--bcher-kva.example', 'ada@bücher.example'],
      [1, 'ada@zürich.example'],
      [1, 'ada@example.com'],
    ] as const) {
      const [identity] = spellings
      const asked = { identity, spellings, recipients: [], suppressionHash: 'hash', now: NOW }
      expect(await course.erase(asked)).toEqual({ existed: false, related, bytesGone: true })
    }
  })
})

describe.each(STORES)('payment events on %s', (kind) => {
  const event = { id: 'evt_1', type: 'checkout.session.completed', leaseMs: 1000 }

  test('an event is claimed by one, and handled once', async () => {
    const { paymentEvents } = await openTestStore(await addressOf(kind))
    const claims = await Promise.all(
      Array.from({ length: 20 }, () => paymentEvents.claim({ ...event, now: NOW })),
    )
    expect(claims.filter((claim) => claim === 'claimed')).toHaveLength(1)
    expect(claims.filter((claim) => claim === 'busy')).toHaveLength(19)
    await paymentEvents.settle({ id: 'evt_1', handled: true, now: NOW })
    expect(await paymentEvents.claim({ ...event, now: NOW + 1e9 })).toBe('handled')
  })

  test('an event is forgotten when it came before a moment, however many there are', async () => {
    const ids = Array.from({ length: 501 }, (_, n) => `evt_old_${n}`)
    const rows = ids.map((id) => `('${id}', 'checkout', ${NOW - 1}, 0)`).join()
    const { paymentEvents } = await storeWithRecords(
      kind,
      `INSERT INTO payment_event (id, type, received_at, claimed_until) VALUES ${rows}`,
    )
    const handle = async (id: string, now: number) => {
      const claim = await paymentEvents.claim({ ...event, id, now })
      await paymentEvents.settle({ id, handled: true, now })
      return claim
    }
    if (kind === 'memory') for (const id of ids) await paymentEvents.claim({ ...event, id, now: NOW - 1 })
    await handle('evt_0', NOW - 1)
    await handle('evt_1', NOW)
    await paymentEvents.prune(NOW)
    expect(await handle('evt_1', NOW)).toBe('handled')
    expect(await Promise.all(['evt_0', 'evt_old_0', 'evt_old_500'].map((id) => handle(id, NOW)))).toEqual([
      'claimed',
      'claimed',
      'claimed',
    ])
  })

  test('an event that was returned, or left by a crash, can be claimed again', async () => {
    const { paymentEvents } = await openTestStore(await addressOf(kind))
    expect(await paymentEvents.claim({ ...event, now: NOW })).toBe('claimed')
    expect(await paymentEvents.claim({ ...event, now: NOW + 999 })).toBe('busy')
    expect(await paymentEvents.claim({ ...event, now: NOW + 1000 })).toBe('claimed')
    await paymentEvents.settle({ id: 'evt_1', handled: false, now: NOW + 1001 })
    expect(await paymentEvents.claim({ ...event, now: NOW + 1001 })).toBe('claimed')
    // A process whose clock is ahead by two hours claims it, and ends.
    expect(await paymentEvents.claim({ ...event, now: NOW + 2 * HOUR_MS })).toBe('claimed')
    expect(await paymentEvents.claim({ ...event, now: NOW + HOUR_MS })).toBe('busy')
    expect(await paymentEvents.claim({ ...event, now: NOW + 1002 })).toBe('claimed')
  })
})
