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

/** A log as a terminal shows it, and what was shown so far. */
function terminalLog(colour = false) {
  const shown = { text: '' }
  const pretty = prettyLines({ colour })
  const write = (lines: string) => {
    shown.text += pretty(lines)
  }
  return { log: createLog({ write, level: 'info', build: undefined }), shown }
}

/** What a terminal shows of a start, a request with that status, and a warning. */
function written(colour: boolean, status = 200): string {
  const { log, shown } = terminalLog(colour)
  log.info('listening', 'the services listen', { web: 'http://127.0.0.1:3000' })
  log.info('request', 'a request was answered', { ...REQUEST, status })
  log.warn('limiter_in_process', 'rate limits count in this process only', { group: 'sharedstore' })
  log.flush()
  return shown.text
}

test('on a terminal a request is one line that reads as an access log does, and other events name their fields', () => {
  const [, , , request, warning, rest] = written(false).split('\n')
  expect(request).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: web GET \/lessons\/:day 200 1\.5 ms$/)
  expect(warning).toMatch(/^\[[\d:.]+\] WARN: rate limits count in this process only group=sharedstore$/)
  expect(rest).toBe('')
})

test('on a terminal the addresses come first, and one line names all that is not configured', () => {
  const { log, shown } = terminalLog()
  log.info('group_absent', 'not configured: mail', { group: 'mail', means: 'no mail' })
  log.info('group_absent', 'not configured: payments', { group: 'payments', means: 'no checkout' })
  log.warn('environment_warning', 'API_URL is not a URL.', { id: 'malformed', fix: 'Correct it.' })
  log.flush()
  expect(shown.text).toBe('')
  log.info('listening', 'the services listen', { web: 'http://127.0.0.1:3000', api: 'http://127.0.0.1:8000' })
  log.flush()
  expect(shown.text.replace(/\[[\d:.]+\]/, '[TIME]').split('\n')).toEqual([
    '',
    '  web     http://127.0.0.1:3000',
    '  api     http://127.0.0.1:8000',
    '',
    '[TIME] WARN: API_URL is not a URL. Correct it. id=malformed',
    'Not configured, all optional: mail, payments. Run platformctl env list for details.',
    '',
  ])
})

test('an error before the services listen shows what was held back', () => {
  const { log, shown } = terminalLog()
  log.warn('limiter_in_process', 'rate limits count in this process only')
  log.error('store_lost', 'the disk did not confirm a write')
  expect(shown.text).toMatch(/rate limits.*\n.*the disk did not confirm/)
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

test('the line that names the ports is written at every level, and what is held back is written once', () => {
  const writes: string[] = []
  const log = createLog({ write: (lines) => writes.push(lines), level: 'error', build: 'b7' })
  log.info('request', 'below the level')
  log.info('listening', 'the services listen', { web: 'http://127.0.0.1:3000' })
  log.flush()
  log.flush()
  expect(writes).toHaveLength(1)
  expect(JSON.parse(writes[0] ?? '')).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    build: 'b7',
    event: 'listening',
    message: 'the services listen',
    web: 'http://127.0.0.1:3000',
  })
})

test('a request is green, yellow from 400 and red from 500 on, where color is asked for', () => {
  const painted = (status: number) => new RegExp(`\\[(\\d+)m${status}`).exec(written(true, status))?.[1]
  expect([200, 399, 400, 499, 500].map(painted)).toEqual(['32', '32', '33', '33', '31'])
  expect(written(false)).not.toContain(`${String.fromCharCode(27)}[`)
})
