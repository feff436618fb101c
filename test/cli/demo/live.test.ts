import { expect, onTestFinished, test } from 'vitest'
import { createLive, steppingClock } from '../../../src/cli/demo/live.ts'
import { livePage } from '../../../src/cli/demo/live-page.ts'
import { serve } from '../../support/servers.ts'

/** A live page whose mail can be broken, and what was done to it. */
async function page(web = 'http://127.0.0.1:1') {
  const done: string[] = []
  const live = createLive(steppingClock())
  onTestFinished(() => live.close())
  const note = (text: string) => async () => void done.push(text)
  await live.show({
    name: 'Kiln School',
    web,
    serviceLabel: '',
    breaks: {
      mail: () => {
        done.push('broken')
        return note('healed')
      },
    },
    announce: note('announced'),
    bounce: () => Promise.reject(new Error('the store hangs')),
    commands: { mail: 'm', service: 's', store: 't', announce: 'a', bounce: 'b', heal: 'h' },
  })
  const press = async (name: string, headers: Record<string, string> = { 'X-Live': '1' }) =>
    (await live.pages.request(`/act/${name}`, { method: 'POST', headers })).status
  const shown = async () => (await live.pages.request('/live.json')).json()
  return { live, press, shown, done }
}

test('the demo goes on when what is broken was healed, and ends with Ctrl-C before that', async () => {
  const { live, press, done } = await page()
  const running = new AbortController()
  expect(await live.whole(running.signal)).toBe(false)
  expect(await press('mail')).toBe(204)
  expect(await press('mail')).toBe(204)
  const goesOn = live.whole(running.signal)
  expect(await press('heal')).toBe(204)
  expect(await goesOn).toBe(true)
  expect(done).toEqual(['broken', 'healed'])
  await press('mail')
  const ends = live.whole(running.signal)
  running.abort(new Error('stopped'))
  await expect(ends).rejects.toThrow('stopped')
})

test('a button is pressed by the page alone, and says in the story when it fails', async () => {
  const { press, shown, done } = await page()
  expect(await press('announce', {})).toBe(403)
  expect(await press('store')).toBe(404)
  expect(await press('nonsense')).toBe(404)
  expect(done).toEqual([])
  expect(await press('bounce')).toBe(204)
  expect(await shown()).toMatchObject({
    can: ['mail'],
    broken: [],
    story: [{ text: 'That did not work: the store hangs' }],
  })
})

test('before the page knows its services, its buttons have names all the same', async () => {
  const buttons = (await livePage().text()).match(/<button data-act.*?<\/button>/g) ?? []
  expect(buttons).toContain('<button data-act="service" disabled>Stop a service</button>')
  expect(buttons.join('')).not.toContain('{')
})

test('the page frames the platform, whose pages refuse any other frame, and takes the forms in it for its own', async () => {
  const asked: unknown[] = []
  const web = await serve(({ url, headers }, response) => {
    asked.push([url, headers.origin])
    response
      .writeHead(303, { 'content-security-policy': "img-src data:; frame-ancestors 'none'", location: '/x' })
      .end()
  })
  const { shown } = await page(web)
  const { site } = (await shown()) as { site: string }
  const answers = await Promise.all(
    [site, 'https://other.example'].map((origin) =>
      fetch(`${site}/lessons/1?a=b`, { headers: { origin }, redirect: 'manual' }),
    ),
  )
  expect(answers[0]?.status).toBe(303)
  expect(answers[0]?.headers.get('content-security-policy')).toBe(
    'img-src data:; frame-ancestors http://127.0.0.1:* http://localhost:*',
  )
  expect(asked.sort()).toEqual([
    ['/lessons/1?a=b', web],
    ['/lessons/1?a=b', 'https://other.example'],
  ])
})

test('an alert of the platform is on the page, and in its story', async () => {
  const { live, shown } = await page()
  const body = JSON.stringify({ data: { title: 'Mail is failing', text: 'No answer' } })
  expect((await live.pages.request('/hook', { method: 'POST', body })).status).toBe(204)
  expect(await shown()).toMatchObject({
    alerts: [{ title: 'Mail is failing', text: 'No answer' }],
    story: [{ text: 'Alert: Mail is failing' }],
  })
})
