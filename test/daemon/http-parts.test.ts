import { chmod, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import * as z from 'zod'
import { once, oneByOne } from '../../src/core/calls.ts'
import { silentLog } from '../../src/core/host.ts'
import { isOwnForm, readBytes, readJson, readText } from '../../src/daemon/http/body.ts'
import {
  emptyResponse,
  htmlResponse,
  jsonResponse,
  pictureResponse,
  textResponse,
} from '../../src/daemon/http/respond.ts'
import { frameOf, page } from '../../src/daemon/pages/layout.ts'
import { isScanner } from '../../src/daemon/routes/mail-links.ts'
import { notifySystemd } from '../../src/daemon/systemd.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { emptyFolder } from '../support/folder.ts'

/** A request whose body is sent while the answer is read. */
const streamed = (body: ReadableStream, headers: Record<string, string> = {}) =>
  new Request('https://www.example.com/', { method: 'POST', body, headers, duplex: 'half' } as RequestInit)

/** A request with this body, in chunks, and what was counted of it. */
function bodied(body: string | Uint8Array[] | null, headers: Record<string, string> = {}) {
  const counted: number[] = []
  const request = Array.isArray(body)
    ? streamed(ReadableStream.from(body), headers)
    : new Request('https://www.example.com/', { method: 'POST', body, headers })
  return {
    request,
    counted,
    bodyShare: { take: (bytes: number) => void counted.push(bytes), release: () => {} },
  }
}
const bytes = (text: string) => new TextEncoder().encode(text)

test('a body of the limit is taken and counted as it arrives, and one byte more is refused, whatever its length says', async () => {
  const exact = bodied([bytes('ab'), bytes('cd')])
  expect(await readText(exact, 4)).toBe('abcd')
  expect(exact.counted).toEqual([2, 2])
  const over = bodied([bytes('ab'), bytes('cde'), bytes('f')])
  await expect(readBytes(over, 4)).rejects.toMatchObject({
    code: 'payload_too_large',
    message: 'This route takes bodies of at most 4 bytes.',
  })
  expect(over.counted).toEqual([2])
  const lies = bodied([bytes('a')], { 'Content-Length': '5' })
  await expect(readBytes(lies, 4)).rejects.toMatchObject({ code: 'payload_too_large' })
  expect(lies.counted).toEqual([])
  expect(await readText(bodied([bytes('a')], { 'Content-Length': '4' }), 4)).toBe('a')
  expect(await readText(bodied(null), 0)).toBe('')
})

test('a body that stalls is given up, and what comes of it later is neither kept nor counted', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const given = bodied(null)
  const told = readBytes({ ...given, request: streamed(readable) }, 9).catch((error: unknown) => error)
  const writer = writable.getWriter()
  await writer.write(bytes('ab'))
  await vi.advanceTimersByTimeAsync(15_000)
  expect(await told).toMatchObject({ code: 'request_timeout', status: 408 })
  await writer.write(bytes('cd')).catch(() => {})
  // The stream is refused from there on.
  expect(await writer.closed.catch(() => 'refused')).toBe('refused')
  expect(given.counted).toEqual([2])
})

test('refuses an encoded, incomplete or non-UTF-8 body, each with its reason', async () => {
  await expect(readBytes(bodied('a', { 'Content-Encoding': 'gzip' }), 9)).rejects.toMatchObject({
    code: 'unsupported_media_type',
    message: expect.stringContaining('Content-Encoding'),
  })
  const broken = bodied(null)
  const request = streamed(new ReadableStream({ start: (on) => on.error(new Error('the line broke')) }))
  await expect(readBytes({ ...broken, request }, 9)).rejects.toMatchObject({
    code: 'bad_request',
    message: 'The body could not be read.',
  })
  await expect(readText(bodied([Uint8Array.of(0xff)]), 9)).rejects.toMatchObject({
    code: 'bad_request',
    message: 'The body could not be read as UTF-8 text.',
  })
  // A signature is over the bytes as they were sent.
  expect(await readText(bodied([bytes('\uFEFFa')]), 9)).toBe('\uFEFFa')
})

const ANY = z.unknown()
const json = (body: string, type = 'application/json') =>
  readJson(bodied(body, { 'Content-Type': type }), ANY, 1_000_000)

test.each([
  ['application/json', true],
  ['Application/JSON; charset=utf-8', true],
  ['application/vnd.api+json', true],
  ['application/json ;x', true],
  ['application/jsonp', false],
  ['text/plain', false],
])('a body of the type %s is taken as JSON: %s', async (type, taken) => {
  const read = json('{"a":1}', type)
  if (taken) expect(await read).toEqual({ a: 1 })
  else await expect(read).rejects.toMatchObject({ code: 'unsupported_media_type' })
})

test('JSON is taken 32 levels deep and with 50,000 values, and not with one more; brackets in texts are no levels', async () => {
  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  expect(await json(nested(32))).toBeDefined()
  await expect(json(nested(33))).rejects.toThrow('nested more than 32 levels deep')
  expect(await json(`{"a":${nested(31)},"b":${nested(31)}}`)).toBeDefined()
  await expect(json(`{"a":${nested(32)}}`)).rejects.toThrow('nested')
  expect(await json(`["\\"${'['.repeat(40)}","${'{'.repeat(40)}\\\\"]`)).toHaveLength(2)
  const list = (members: number) => `[${Array(members).fill('1').join(',')}]`
  expect(await json(list(50_000))).toHaveLength(50_000)
  await expect(json(list(50_001))).rejects.toThrow('more than 50000 values')
  const object = (members: number) =>
    `{${Array.from({ length: members }, (_, n) => `"${n}":",:"`).join(',')}}`
  expect(Object.keys((await json(object(49_999))) as object)).toHaveLength(49_999)
  await expect(json(`[${object(50_000)}]`)).rejects.toThrow('values')
})

test('invalid JSON and JSON of the wrong form are refused, with an issue for each field', async () => {
  await expect(json('{')).rejects.toMatchObject({
    code: 'bad_request',
    issues: [{ path: '', message: 'not JSON' }],
  })
  expect(await json('\uFEFF[]')).toEqual([])
  const schema = z.strictObject({ a: z.strictObject({ b: z.string() }) })
  const body = bodied('{"a":{"b":1,"c":2,"d":3}}', { 'Content-Type': 'application/json' })
  await expect(readJson(body, schema, 99)).rejects.toMatchObject({
    code: 'bad_request',
    issues: [
      { path: 'a.b', message: expect.stringContaining('expected string') },
      { path: 'a.c', message: 'Unrecognized key' },
      { path: 'a.d', message: 'Unrecognized key' },
    ],
  })
  const listed = bodied('[{"b":"x"},{"b":1}]', { 'Content-Type': 'application/json' })
  await expect(readJson(listed, z.array(z.strictObject({ b: z.string() })), 99)).rejects.toMatchObject({
    issues: [{ path: '1.b' }],
  })
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`x${n}`, 1]))
  await expect(
    readJson(bodied(JSON.stringify(many), { 'Content-Type': 'application/json' }), z.strictObject({}), 9999),
  ).rejects.toMatchObject({ issues: { length: 50 } })
})

const FORM = 'application/x-www-form-urlencoded'
const SITE = 'https://www.example.com'
test.each<[type: string, origin: string | undefined, site: string | undefined, own: boolean]>([
  [FORM, undefined, undefined, true],
  [`${FORM};charset=UTF-8`, undefined, 'same-origin', true],
  [FORM, undefined, 'none', true],
  [FORM, undefined, 'same-site', false],
  [FORM, undefined, 'cross-site', false],
  [`${FORM}x`, undefined, undefined, false],
  ['multipart/form-data', undefined, 'same-origin', false],
  [FORM, 'https://inner.example:3000', undefined, true],
  [FORM, SITE, undefined, true],
  [FORM, 'https://evil.example', undefined, false],
  [FORM, 'null', undefined, false],
  [FORM, `${SITE}:8443`, undefined, false],
  [FORM, 'https://evil.example', 'same-origin', true],
  [FORM, SITE, 'cross-site', false],
])(
  'a form of the type %s from the Origin %s and the Sec-Fetch-Site %s is our own: %s',
  (type, origin, site, own) => {
    const headers = {
      'Content-Type': type,
      ...(origin && { Origin: origin }),
      ...(site && { 'Sec-Fetch-Site': site }),
    }
    const request = new Request('http://inner.example:3000/', { method: 'POST', headers })
    expect(isOwnForm(request, SITE)).toBe(own)
  },
)

const IPHONE = 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/22F76'
const BROWSER = { accept: 'text/html,*/*;q=0.8', 'user-agent': 'Mozilla/5.0 Firefox/140.0' }
test.each<[Record<string, string>, boolean]>([
  [BROWSER, false],
  [{ ...BROWSER, accept: 'application/json' }, false],
  [{ ...BROWSER, accept: '*/*' }, true],
  [{ 'user-agent': 'Mozilla/5.0' }, true],
  [{ accept: 'text/html' }, false],
  [{}, false],
  [{ accept: '*/*', 'user-agent': 'curl/8.5.0' }, false],
  [{ accept: 'image/avif,*/*;q=0.8' }, true],
  [{ accept: '*/*', 'user-agent': 'Go-http-client/1.1' }, true],
  [{ ...BROWSER, 'user-agent': 'Mozilla/5.0 (compatible; bingbot/2.0)' }, true],
  [{ ...BROWSER, 'user-agent': 'Barracuda Sentinel' }, true],
  [{ ...BROWSER, 'user-agent': 'Mozilla/5.0 Cubot' }, true],
  [{ ...BROWSER, 'user-agent': 'Mozilla/5.0 Robotics' }, false],
  // People who follow a link inside of Instagram, Facebook or Telegram.
  [{ ...BROWSER, 'user-agent': `${IPHONE} Telegram-Android/11.2.3` }, false],
  [{ ...BROWSER, 'user-agent': `${IPHONE} Instagram 390.0.0.28.85 (iPhone15,3; iOS 18_5; de_DE)` }, false],
  [{ ...BROWSER, 'user-agent': `${IPHONE} [FBAN/FBIOS;FBAV/512.0.0.46.109;FBDV/iPhone15,3]` }, false],
  [{ ...BROWSER, 'sec-purpose': 'prefetch;prerender' }, true],
  [{ ...BROWSER, purpose: 'Preview' }, true],
  [{ ...BROWSER, 'sec-purpose': 'prerender' }, true],
  [{ ...BROWSER, 'x-moz': 'prefetch' }, true],
  [{ ...BROWSER, 'x-purpose': 'preview' }, true],
  [{ ...BROWSER, purpose: 'reading' }, false],
])('with %j a program follows the link, and no person: %s', (headers, scanner) => {
  expect(isScanner(new Headers(headers))).toBe(scanner)
})

test.each([
  [
    'Mozilla/5.0 (compatible; ',
    'Mimecast Proofpoint ZScaler VirusTotal urlscan.io FireEye Trellix Symantec Sophos',
  ],
  [
    'Mozilla/5.0 (compatible; ',
    'Forcepoint IronPort Fortinet CheckPoint Bitdefender Kaspersky Google-Safety',
  ],
  [
    'Mozilla/5.0 (via ',
    'GoogleImageProxy YahooMailProxy HeadlessChrome PhantomJS SkypeUriPreview spider crawler',
  ],
  ['', 'facebookexternalhit/1.1 TelegramBot Discordbot/2.0 Slackbot-LinkExpanding Slack-ImgProxy ms-office'],
  ['', 'Java/17.0 okhttp/4.12 Apache-HttpClient/5.2 libwww-perl/6.7 WinHttp Outlook-iOS/2.0 SafeLinks'],
])('filters, previews and libraries that name themselves are no people: %s%s', (before, names) => {
  const people = names
    .split(' ')
    .filter((name) => !isScanner(new Headers({ ...BROWSER, 'user-agent': before + name })))
  expect(people).toEqual([])
})

test('no answer may be cached, sniffed, framed, indexed or leaked as a referrer, except a picture', async () => {
  const of = (response: Response) => ({ status: response.status, ...Object.fromEntries(response.headers) })
  const common = {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex',
    'cross-origin-resource-policy': 'same-origin',
  }
  const nothing = "default-src 'none'; frame-ancestors 'none'"
  expect(of(jsonResponse({}, 201, { A: 'b' }))).toEqual({
    ...common,
    status: 201,
    a: 'b',
    'content-type': 'application/json; charset=utf-8',
    'content-security-policy': nothing,
  })
  expect(of(emptyResponse(204, { A: 'b' }))).toEqual({ ...common, status: 204, a: 'b' })
  expect(of(textResponse('x', 'text/plain'))).toEqual({
    ...common,
    status: 200,
    'content-type': 'text/plain',
  })
  expect(of(pictureResponse('<svg/>', 'image/svg+xml; charset=utf-8'))).toEqual({
    ...common,
    status: 200,
    'cross-origin-resource-policy': 'cross-origin',
    'cache-control': 'public, max-age=60',
    'content-type': 'image/svg+xml; charset=utf-8',
    'content-security-policy': nothing,
  })
  const written = (extras: Parameters<typeof page>[3]) => {
    const answer = of(htmlResponse(page(frameOf(learning, ''), 'A page', 'x', extras)))
    return JSON.parse(JSON.stringify(answer).replaceAll(/nonce-[\w+/=]+/g, 'nonce-n')) as object
  }
  const end = "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
  expect(written({ connects: true })).toEqual({
    ...common,
    status: 200,
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'nonce-n'; ${end}`,
  })
  expect(written({ script: '1', connects: true })).toMatchObject({
    'content-security-policy': `default-src 'none'; style-src 'nonce-n'; script-src 'nonce-n'; connect-src 'self'; ${end}`,
  })
})

test('once() shares what it opened, tries again after a failure, and opens nothing when only asked', async () => {
  let opened = 0
  const open = once(async () => {
    opened += 1
    if (opened === 1) throw new Error('not yet')
    return opened
  })
  expect(await open.opened()).toBeUndefined()
  expect(opened).toBe(0)
  await expect(Promise.all([open(), open()])).rejects.toThrow('not yet')
  expect(opened).toBe(1)
  expect(await open.opened()).toBeUndefined()
  expect(await Promise.all([open(), open(), open.opened()])).toEqual([2, 2, 2])
})

test('oneByOne runs every function, also after one that failed, and rejects with the first error', async () => {
  const steps: string[] = []
  const work = (name: string) => async () => {
    steps.push(`${name} begins`)
    await Promise.resolve()
    steps.push(`${name} ends`)
    if (name !== 'c') throw new Error(`fault of ${name}`)
  }
  await expect(oneByOne(['a', 'b', 'c'].map(work))).rejects.toThrow('fault of a')
  expect(steps).toEqual(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]))
})

/** A `systemd-notify` on the PATH that writes its arguments to a file, and the warnings of the notifier that calls it. */
async function withSystemd() {
  const folder = await emptyFolder()
  const [said, command] = [path.join(folder, 'said'), path.join(folder, 'systemd-notify')]
  const become = async (script: string) => {
    await writeFile(command, `#!/bin/sh\n${script}\n`)
    await chmod(command, 0o700)
  }
  await become(`echo "$NOTIFY_SOCKET $*" >> '${said}'`)
  const warned: string[] = []
  const log = { ...silentLog, warn: (event: string) => void warned.push(event) }
  const start = (env: Record<string, string> = {}) =>
    notifySystemd({ env: { NOTIFY_SOCKET: '/run/n', PATH: folder, ...env }, log })
  return {
    folder,
    said,
    become,
    warned,
    start,
    lines: async () => (await readFile(said, 'utf8')).split('\n'),
  }
}

test('systemd is notified of ready and then of stopping, and a missing command is logged once', async () => {
  const { folder, said, become, warned, start, lines } = await withSystemd()
  const systemd = start()
  systemd.ready('listening')
  systemd.stopping()
  await systemd.close()
  expect(await lines()).toEqual(['/run/n READY=1 STATUS=listening', '/run/n STOPPING=1 STATUS=stopping', ''])
  expect(warned).toEqual([])
  const none = start({ NOTIFY_SOCKET: '' })
  none.ready('a')
  await none.close()
  expect(await lines()).toHaveLength(3)
  await become('exit 1')
  // A command that fails, a folder that there is not, and a file in the place of a folder: Node throws the last.
  for (const PATH of [folder, path.join(folder, 'none'), said]) {
    const without = start({ PATH })
    without.ready('a')
    without.stopping()
    await without.close()
    expect(warned.splice(0)).toEqual(['systemd_not_notified'])
  }
})

test('systemd is told twice in each period of its watchdog that the process runs, until the end', async () => {
  const { warned, start, lines } = await withSystemd()
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const systemd = start({ WATCHDOG_USEC: '3000000' })
  vi.advanceTimersByTime(1499)
  systemd.ready('a')
  vi.advanceTimersByTime(1)
  vi.advanceTimersByTime(1500)
  await systemd.close()
  expect(await lines()).toEqual(['/run/n READY=1 STATUS=a', '/run/n WATCHDOG=1', '/run/n WATCHDOG=1', ''])
  expect(warned).toEqual([])
  const without = start({ WATCHDOG_USEC: '' })
  without.ready('a')
  await without.close()
  expect(vi.getTimerCount()).toBe(0)
})
