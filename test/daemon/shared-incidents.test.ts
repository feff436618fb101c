import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/core/host.ts'
import { openHistory } from '../../src/core/store/open.ts'
import { openIncident } from '../support/incidents.ts'
import { opened } from '../support/opened.ts'
import { addressOf, openTestStore, type StoreKind } from '../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21, 9)

/** Two machines on one store, of which only the first saw the fault; what each says of the incidents. */
async function pagesOn(kind: StoreKind) {
  const address = await addressOf(kind)
  const clock = { ...systemClock, now: () => NOW }
  const machine = async () => {
    const [store, history] = [await openTestStore(address), await openHistory(undefined)]
    onTestFinished(() => history.close())
    const { ask } = opened({ store, history, clock })
    return { store, read: async (path: string) => (await ask(path)).text() }
  }
  const [first, second] = [await machine(), await machine()]
  const base = { service: 'web', reason: 'no answer in time', affected: ['agent'], seenAt: NOW - 60_000 }
  const over = { closedAt: NOW - 60_000, acknowledgedAt: undefined, acknowledgedBy: undefined }
  for (const cause of ['mail', 'disk_nearly_full'])
    await openIncident(first.store.incidents, {
      ...{ ...base, ...over, id: cause, cause, openedAt: NOW - 360_000 },
    })
  const why = {
    id: 'u1',
    subject: 'mail',
    at: NOW,
    text: 'Its disk was full.',
    state: 'postmortem',
    by: 'ada',
  } as const
  await first.store.incidents.update(why)
  const of = async ({ read }: typeof first) => ({
    json: (JSON.parse(await read('/status.json')) as { incidents: unknown }).incidents,
    feed: (await read('/status.atom')).match(/<title>.*<\/title>/g),
  })
  return [await of(first), await of(second), second.read] as const
}

test('machines that share a PostgreSQL show the same incidents, without those that are for operators only', async () => {
  const [first, second, read] = await pagesOn('postgres')
  expect(second).toEqual(first)
  expect(first?.json).toEqual([
    {
      page: 'incidents/web-mail-1795251240.html',
      title: 'Mail (Web) was failing for 5 minutes',
      service: 'web',
      probe: 'mail',
      state: 'failing',
      beganAt: '2026-11-21T08:54:00.000Z',
      endedAt: '2026-11-21T08:59:00.000Z',
      lengthSeconds: 300,
      feltBy: ['agent'],
      updates: [{ at: '2026-11-21T09:00:00.000Z', state: 'postmortem', text: 'Its disk was full.' }],
    },
  ])
  expect(first.feed).toHaveLength(2)
  // Also by the link of a machine that saw it begin four minutes earlier or later.
  for (const at of [1795251240, 1795251000, 1795251480]) {
    const page = await read(`/incidents/web-mail-${at}.html`)
    expect(page).toContain('<h1>Mail (Web) was failing for 5 minutes</h1>')
    expect(page).toMatch(/<h2 id="postmortem">Post-mortem<\/h2><p [^>]*>Its disk was full\.</)
    expect(page).not.toContain('no answer in time')
  }
  for (const page of ['web-mail-1795250900', 'web-mail-1795251600', 'web-store-1795251240'])
    expect(JSON.parse(await read(`/incidents/${page}.html`))).toMatchObject({ code: 'not_found' })
  expect(await read('/incidents/index.html')).toContain('<a href="web-mail-1795251240.html">Mail (Web) was')
  for (const page of ['web-mail-1795251240', 'index'])
    expect(await read(`/incidents/${page}.html?language=de`)).toContain('<html lang="de"')
})

test('a machine with its own file shows its own record', async () => {
  expect((await pagesOn('sqlite'))[0]?.json).toEqual([])
})
