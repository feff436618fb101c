import { expect, test } from 'vitest'
import { createLog } from '../../src/daemon/log.ts'
import { prettyLines } from '../../src/daemon/pretty-log.ts'

const REQUEST = {
  service: 'web',
  method: 'GET',
  route: '/lessons/:day',
  status: 200,
  durationMs: 1.5,
  requestId: 'request-1',
}

function written(colour: boolean): string {
  let text = ''
  const pretty = prettyLines({ colour })
  const log = createLog({
    write: (lines) => {
      text += pretty(lines)
    },
    level: 'info',
    build: 'b1',
  })
  log.info('request', 'a request was answered', REQUEST)
  log.warn('limiter_in_process', 'rate limits count in this process only', { group: 'sharedstore' })
  log.flush()
  return text
}

test('on a terminal a request is one line that reads as an access log does, and other events name their fields', () => {
  const [request, warning, rest] = written(false).split('\n')
  expect(request).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: web GET \/lessons\/:day 200 1\.5 ms$/)
  expect(warning).toMatch(
    /^\[[\d:.]+\] WARN: rate limits count in this process only \{"group":"sharedstore"\}$/,
  )
  expect(rest).toBe('')
})

test('colour is written only where it was asked for', () => {
  const start = `${String.fromCharCode(27)}[`
  expect(written(false)).not.toContain(start)
  expect(written(true)).toContain(`${start}32m200${start}`)
})

test('the lines of one turn of the event loop are one write, and an error waits for nothing', async () => {
  const writes: string[] = []
  const log = createLog({ write: (lines) => writes.push(lines), level: 'info', build: undefined })
  log.info('one', 'first')
  log.info('two', 'second')
  log.debug('three', 'below the level')
  expect(writes).toEqual([])
  await new Promise((resolve) => setImmediate(resolve))
  expect(writes.map((lines) => lines.trim().split('\n').length)).toEqual([2])
  log.error('four', 'now')
  expect(writes).toHaveLength(2)
})
