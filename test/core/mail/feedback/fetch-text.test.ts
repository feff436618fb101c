import type { RequestListener } from 'node:http'
import { expect, test } from 'vitest'
import { createFetchText } from '../../../../src/core/mail/feedback/ses.ts'
import { serve } from '../../../support/servers.ts'

/** A server on loopback that counts what is asked of it. */
async function counted(answer: RequestListener) {
  let asked = 0
  const origin = await serve((request, response) => {
    asked += 1
    answer(request, response)
  })
  return { origin, asked: () => asked }
}

test('a certificate is fetched once and kept; another text is fetched each time', async () => {
  const { origin, asked } = await counted((request, response) => response.end(`content of ${request.url}`))
  const fetchText = createFetchText()
  for (let times = 0; times < 3; times += 1)
    expect(await fetchText(`${origin}/a.pem`)).toBe('content of /a.pem')
  expect(asked()).toBe(1)
  for (let times = 0; times < 2; times += 1)
    expect(await fetchText(`${origin}/?Action=ConfirmSubscription`)).toMatch(/^content of/)
  expect(asked()).toBe(3)
})

test('no more than 20 certificates are kept', async () => {
  const { origin, asked } = await counted((_, response) => response.end('pem'))
  const fetchText = createFetchText()
  for (let n = 0; n <= 20; n += 1) await fetchText(`${origin}/${n}.pem`)
  await fetchText(`${origin}/20.pem`)
  expect(asked()).toBe(21)
  await fetchText(`${origin}/0.pem`)
  expect(asked()).toBe(22)
})

test('a redirect is not followed, wherever it leads', async () => {
  const elsewhere = await counted((_, response) => response.end('a certificate of somebody else'))
  const { origin } = await counted((_, response) =>
    response.writeHead(302, { Location: `${elsewhere.origin}/a.pem` }).end(),
  )
  await expect(createFetchText()(`${origin}/a.pem`)).rejects.toThrow()
  expect(elsewhere.asked()).toBe(0)
})

test.each([
  ['an error of the server', 503, 'try later'],
  ['a missing file', 404, 'nothing here'],
  ['more than 64 kB', 200, 'x'.repeat(64 * 1024 + 1)],
])('%s is no certificate, and is not kept', async (_, status, body) => {
  let sound = false
  const { origin } = await counted((_request, response) =>
    response.writeHead(sound ? 200 : status).end(sound ? 'pem' : body),
  )
  const fetchText = createFetchText()
  await expect(fetchText(`${origin}/a.pem`)).rejects.toThrow(/^the answer is \d+$|^too_large$/)
  sound = true
  expect(await fetchText(`${origin}/a.pem`)).toBe('pem')
})

test('a response that breaks off is not a certificate', async () => {
  const { origin } = await counted((_, response) => {
    response.writeHead(200, { 'Content-Length': '100' }).write('half')
    response.on('close', () => {})
    setImmediate(() => response.destroy())
  })
  await expect(createFetchText()(`${origin}/a.pem`)).rejects.toThrow()
})

test('every request ends after five seconds', async () => {
  let patience: AbortSignal | null | undefined
  const fetchText = createFetchText(async (_, init) => {
    patience = init?.signal
    return new Response('pem')
  })
  await fetchText('https://sns.eu-central-1.amazonaws.com/a.pem')
  expect(patience).toBeInstanceOf(AbortSignal)
})
