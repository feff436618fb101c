import { expect, onTestFinished, test } from 'vitest'
import { exchange } from '../../../src/core/network/exchange.ts'
import { serve } from '../../support/servers.ts'

const never = new AbortController().signal

async function posted(
  answer: Parameters<typeof serve>[0],
  {
    patienceMs = 10_000,
    signal = never,
  }: { readonly patienceMs?: number; readonly signal?: AbortSignal } = {},
) {
  const headers = { authorization: 'Bearer secret' }
  return exchange(await serve(answer), { method: 'POST', headers, signal }, 16_000_000, patienceMs)
}

test('the answer comes whole, in however many parts it was sent', async () => {
  const answer = await posted((request, response) => {
    response.writeHead(200).write(request.headers.authorization)
    setImmediate(() => response.end(` ${request.method}`))
  })
  expect(answer).toEqual({ status: 200, text: 'Bearer secret POST' })
})

test('gives up on a service that stays silent past the timeout, before or within its response', async () => {
  await expect(posted(() => {}, { patienceMs: 50 })).rejects.toMatchObject({ name: 'TimeoutError' })
  const halfway = posted((_, response) => void response.writeHead(200).write('{'), { patienceMs: 200 })
  await expect(halfway).rejects.toMatchObject({ name: 'TimeoutError' })
})

test('treats a connection closed within the response as no answer', async () => {
  const cut = posted((_, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('{')
    setImmediate(() => response.destroy())
  })
  await expect(cut).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
})

test('an aborted call is reported as aborted, and not as a silent service', async () => {
  const stop = new AbortController()
  await expect(posted(() => stop.abort(), { signal: stop.signal })).rejects.toMatchObject({
    name: 'AbortError',
  })
})

test('stops reading a response that is larger than any summary', async () => {
  const piece = Buffer.alloc(1024 * 1024, ' ')
  let written = 0
  let going = true
  onTestFinished(() => {
    going = false
  })
  const endless = posted((_, response) => {
    const more = () => {
      if (!going || response.destroyed) return
      written += piece.length
      response.write(piece, more)
    }
    response.writeHead(200)
    more()
  })
  await expect(endless).rejects.toThrow('too_large')
  expect(written).toBeLessThan(64 * 1024 * 1024)
})
