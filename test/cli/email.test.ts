import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import PostalMime from 'postal-mime'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { lintMails } from '../../src/core/mail/lint/lint.ts'
import { openStore } from '../../src/core/store/open.ts'
import { PAGES } from '../../src/daemon/routes.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { baseMailSet } from '../../src/presets/base/mails.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { platformctl } from '../support/cli.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder, folderWith } from '../support/folder.ts'
import { MAILS } from '../support/learning.ts'
import { rudeSmtp } from '../support/rude-smtp.ts'
import { run as runIn } from '../support/run.ts'
import { serve } from '../support/servers.ts'

const templates = fileURLToPath(new URL('../../templates', import.meta.url))

async function run(
  args: readonly string[],
  change: Readonly<Record<string, (text: string) => string>> = {},
  platform = learning,
) {
  const cwd = await emptyFolder()
  await cp(templates, path.join(cwd, 'mails'), { recursive: true })
  for (const [name, edit] of Object.entries(change)) {
    const file = path.join(cwd, 'mails', name)
    await writeFile(file, edit(await readFile(file, 'utf8')))
  }
  return runIn(args, { cwd, platform })
}

const lintFolder = (folder: string, others = baseMailSet.folders) =>
  lintMails(
    { definitions: MAILS, folders: [{ path: folder }, ...others] },
    (_, file) => `mails/${file}`,
    PAGES,
  )

const LINT = ['email', 'lint', '--templates', 'mails'] as const
const broken = { 'welcome.md': (text: string) => text.replace('{{startUrl}}', '{{startUrll}}') }
/** Compiling takes the time: one mail is enough where a test is of what is done with a finding. */
const oneMail: typeof learning = {
  ...learning,
  mails: { ...learning.mails, definitions: MAILS.filter(({ name }) => name === 'welcome') },
}
const shouting = {
  'welcome.md': (text: string) => text.replace('subject: Welcome', 'subject: WELCOME TO YOU'),
}

test('lint passes on the mails of the package, also with --strict, and lists all fourteen', async () => {
  // By the built command, which has the templates and the compiler from its package.
  const { exitCode, stdout, stderr } = await platformctl(['email', 'lint', '--strict'], { cwd: templates })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  // None has more than 40 KB.
  expect(stdout.match(/^✔ \S+ +[1-3]?\d\.\d KB /gm)).toHaveLength(14)
  expect(stdout).toMatch(/✔ passed: 0 errors, 0 warnings in 14 mails$/)
})

test('a template that does not compile is a finding at its line, exit 1, and the others are still checked', async () => {
  const two = {
    ...learning,
    mails: {
      ...learning.mails,
      definitions: MAILS.filter(({ name }) => /^(?:welcome|magic-link)$/.test(name)),
    },
  }
  const { code, stdout } = await run([...LINT, '--format', 'json'], broken, two)
  expect(code).toBe(1)
  const report = JSON.parse(stdout) as { ok: boolean; mails: unknown[]; findings: { id: string }[] }
  expect(report).toMatchObject({ version: 1, ok: false })
  expect(report.mails).toHaveLength(2)
  expect(report.findings.filter(({ id }) => id === 'template-broken')).toEqual([
    expect.objectContaining({
      severity: 'error',
      location: { file: 'mails/welcome.md', line: 6, column: 1 },
      cause: expect.stringContaining('there is no slot startUrll'),
    }),
  ])
})

test('a warning fails with --strict only, in every format', async () => {
  expect((await run(LINT, shouting, oneMail)).code).toBe(0)
  const formats = {
    text: /▲ warning subject-shouts {2}mails\/welcome\.md:2:1/,
    github: /^::warning file=mails\/welcome\.md,line=2,col=1,title=subject-shouts::/m,
    sarif: /"ruleId": "subject-shouts"/,
    junit: /<failure type="warning" message="The subject shouts\."/,
    json: /"id": "subject-shouts"/,
  }
  for (const [format, pattern] of Object.entries(formats)) {
    const { code, stdout } = await run([...LINT, '--strict', '--format', format], shouting, oneMail)
    expect({ format, code }).toEqual({ format, code: 1 })
    expect(stdout).toMatch(pattern)
  }
})

test('lint accepts the warnings of a baseline, and shows notices only where they are asked for', async () => {
  const known = path.join(await emptyFolder(), 'known.json')
  await writeFile(known, (await run([...LINT, '--format', 'json'], shouting, oneMail)).stdout)
  expect((await run([...LINT, '--strict', '--baseline', known], shouting, oneMail)).code).toBe(0)
  const [quiet, all] = [
    await run([...LINT, '--format', 'github'], {}, oneMail),
    await run([...LINT, '--format', 'github', '--notices'], {}, oneMail),
  ]
  expect([quiet.stdout.includes('::notice file'), all.stdout.includes('::notice file')]).toEqual([
    false,
    true,
  ])
})

test.each(['lint', 'preview'])('email %s of a folder without a layout is wrong usage', async (command) => {
  const { code, stdout, stderr } = await run(['email', command, '--templates', 'nowhere'])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(/^platformctl: nowhere is not a folder of templates: .*\.\n$/)
})

test('list names the fourteen mails with their subjects and slots', async () => {
  const { code, stdout } = await run(['email', 'list', '--format', 'json'])
  expect(code).toBe(0)
  const { version, mails } = JSON.parse(stdout) as {
    version: number
    mails: { name: string; slots: object }[]
  }
  expect(version).toBe(1)
  expect(mails).toHaveLength(14)
  expect(mails[4]).toMatchObject({ name: 'exam-passed', subject: 'Passed: Gates and measurement' })
  expect((await run(['email', 'list'])).stdout).toContain('slots: exam, score, resultUrl\n')
})

test('render prints one mail as html, as text and as a message that a mail program opens', async () => {
  const of = async (part: string) => (await run(['email', 'render', 'exam-passed', '--format', part])).stdout
  expect((await run(['email', 'render', 'exam-passed', '--as', 'text'])).stdout).toBe(await of('text'))
  expect(await of('html')).toMatch(/^<!doctype html>\n[\s\S]*Gates and measurement[\s\S]*<\/html>\n$/)
  expect(await of('text')).toMatch(/^Well done\n=========\n\nYou passed Gates and measurement with 87 %\./)
  const parsed = await PostalMime.parse(await of('eml'))
  expect(parsed).toMatchObject({
    subject: 'Passed: Gates and measurement',
    to: [{ address: 'you@example.com' }],
  })
  expect(parsed.html).toContain('Gates and measurement')
})

test('render of a broken template says where, exit 1', async () => {
  const { code, stdout, stderr } = await run(['email', 'render', 'welcome', '--templates', 'mails'], broken)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^platformctl: welcome\.md:6: there is no slot startUrll; .*\.\n$/)
})

const mailTo = (smtpUrl: string) => ({
  MAILER_API_KEY: 'a-key-of-a-provider',
  MAILER_SMTP_URL: smtpUrl,
  MAILER_FROM: 'course@example.com',
})

const sendTest = (env: Record<string, string>) =>
  runIn(['email', 'send-test', 'course-day-1', '--to', 'ada@example.com'], { env })

test('send-test sends one mail through the configured transport', async () => {
  const { port, lines } = await rudeSmtp()
  expect(await sendTest(mailTo(`smtp://127.0.0.1:${port}`))).toEqual({
    code: 0,
    stdout: 'sent to ada@example.com\n',
    stderr: '',
  })
  expect(lines).toContain('RCPT TO:<ada@example.com>')
})

test('a signal ends send-test while the server is silent, and says that the mail may have left', async () => {
  const interrupt = new AbortController()
  const { port } = await rudeSmtp((word) => {
    if (word !== 'END') return undefined
    interrupt.abort()
    return null
  })
  const env = mailTo(`smtp://127.0.0.1:${port}`)
  const args = ['email', 'send-test', 'course-day-1', '--to', 'ada@example.com']
  expect(await runIn(args, { env, signal: interrupt.signal })).toMatchObject({
    code: 3,
    stderr: 'platformctl: not sent: interrupted; the server may have it all the same.\n',
  })
})

test('send-test neither makes nor claims the store of the environment, and is sent while mail is paused', async () => {
  const { port, lines } = await rudeSmtp()
  const folder = await emptyFolder()
  const env = (name: string) => ({
    ...mailTo(`smtp://127.0.0.1:${port}`),
    MAILER_BOUNCE_ADDRESS: 'bounces@example.com',
    STORE_URL: `sqlite:${path.join(folder, name)}`,
  })
  const sent = { code: 0, stdout: 'sent to ada@example.com\n', stderr: '' }
  expect(await sendTest(env('new/store.sqlite'))).toEqual(sent)
  expect(await readdir(folder)).toEqual([])
  const store = await openStore({ kind: 'sqlite', file: path.join(folder, 'kept.sqlite') })
  onTestFinished(() => store.close())
  const pause = await runIn(['mail', 'pause', '--reason', 'wrong prices'], { env: env('kept.sqlite') })
  expect(pause.stdout).toMatch(/^paused: .*course/)
  expect(await sendTest(env('kept.sqlite'))).toEqual(sent)
  expect(await store.owner.name()).toBeUndefined()
  expect(lines.filter((line) => line.startsWith('RCPT'))).toHaveLength(2)
})

test('send-test of a lesson, also of a translation, has the headers of a lesson, as render shows them', async () => {
  const bodies: string[] = []
  const url = await serve(async (incoming, response) => {
    bodies.push((await incoming.toArray()).join(''))
    response.end('{"id":"sent-1"}')
  })
  const env = {
    MAILER_API_KEY: 're_key',
    MAILER_API_URL: url,
    MAILER_FROM: 'course@example.com',
    MAILER_REPLY_TO: 'team@example.com',
  }
  const lesson = '---\nsubject: Clay\n---\n\n# Clay\n'
  const cwd = await folderWith({ 'firing/1-clay.md': lesson, 'firing/de/1-clay.md': lesson })
  const own = resolvePlatform(
    { preset: 'base', courses: { firing: { lessons: './firing' } } },
    { folder: cwd },
  )
  for (const [name, parts] of [
    ['course-day-1', {}],
    ['firing-1-clay', { platform: own }],
    ['de/firing-1-clay', { platform: own }],
  ] as const) {
    const sending = ['email', 'send-test', name, '--to', 'ada@example.com']
    expect(await runIn(sending, { cwd, env, ...parts })).toMatchObject({ code: 0 })
    const { headers, reply_to: replyTo } = JSON.parse(bodies.pop() ?? '')
    const { 'Message-ID': _, ...sent } = headers as Record<string, string>
    expect(replyTo).toBe('team@example.com')
    expect(sent).toMatchObject({ 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' })
    const { stdout } = await runIn(['email', 'render', name, '--format', 'eml'], { cwd, ...parts })
    const rendered = new Map((await PostalMime.parse(stdout)).headers.map(({ key, value }) => [key, value]))
    for (const [field, value] of Object.entries(sent)) expect(rendered.get(field.toLowerCase())).toBe(value)
  }
})

test('a mail refused by the server exits with 3 and the reason, and unconfigured mail with 1', async () => {
  const { port } = await rudeSmtp((word) => (word === 'RCPT' ? '550 5.1.1 no such user' : undefined))
  expect(await sendTest(mailTo(`smtp://127.0.0.1:${port}`))).toEqual({
    code: 3,
    stdout: '',
    stderr: 'platformctl: not sent: the address does not exist (550).\n',
  })
  expect(await sendTest({})).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'platformctl: not sent: mail is not configured. Run platformctl env explain mail to see what to set.\n',
  })
})

test('the preview names the folders of the platform’s own mails, sends to the addresses of --to alone, and a lesson that is new while it runs', async () => {
  const lesson = '---\nsubject: Clay\n---\n\n# Clay\n'
  const cwd = await folderWith({ 'firing/1-clay.md': lesson })
  const platform = resolvePlatform(
    { preset: 'base', courses: { firing: { lessons: './firing' } } },
    { folder: cwd },
  )
  const end = new AbortController()
  const { context, stdout, stderr } = testContext({ cwd, platform, signal: end.signal })
  const running = runProgram(['email', 'preview', '--port', '0', '--to', 'ada@example.com'], context)
  await expect
    .poll(stderr)
    .toBe(
      'mails: firing, those of the package. The page reloads when you save one; Ctrl-C ends the preview.\n',
    )
  const { origin, hash } = new URL(stdout())
  const asked = await fetch(`${origin}/session`, {
    method: 'POST',
    body: JSON.stringify({ key: hash.slice(5) }),
  })
  const { token } = (await asked.json()) as { readonly token: string }
  const sender = await fetch(`${origin}/sender.json`, { headers: { 'X-Preview-Token': token } })
  expect(await sender.json()).toMatchObject({ recipients: ['ada@example.com'] })
  // What a mail holds runs no script on the page that may send.
  const shown = await fetch(`${origin}/mails/welcome.html`)
  expect(shown.headers.get('content-security-policy')).toMatch(
    /^sandbox allow-same-origin allow-popups; default-src 'none'/,
  )
  const second = await run(['email', 'preview', '--port', new URL(origin).port])
  expect(second).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^platformctl: port \d+ cannot be used \(EADDRINUSE\): /),
  })
  await writeFile(path.join(cwd, 'firing/2-fire.md'), lesson)
  const name = path.join('firing', '2-fire.md')
  await expect.poll(stderr).toContain(`${name} is new: end the preview and start it again to see it.\n`)
  end.abort()
  expect(await running).toBe(0)
})

test('sending with the built command loads no compiler of templates', async () => {
  const hooks = `import { registerHooks } from 'node:module'
registerHooks({ load(url, context, next) { process.stderr.write('loaded ' + url + '\\n'); return next(url, context) } })\n`
  const cwd = await folderWith({ 'hooks.mjs': hooks })
  const { port } = await rudeSmtp()
  const { stdout, stderr } = await platformctl(['email', 'send-test', 'welcome', '--to', 'ada@example.com'], {
    cwd,
    env: {
      ...mailTo(`smtp://127.0.0.1:${port}`),
      NODE_OPTIONS: `--import ${pathToFileURL(path.join(cwd, 'hooks.mjs')).href}`,
    },
  })
  expect(stdout).toBe('sent to ada@example.com')
  expect(stderr).toContain('nodemailer')
  expect(stderr).not.toMatch(/mjml|marked|caniemail|css-select|chunks\/(?:folder|lint)/)
})

test('lint reports a template that is missing, there twice or unused, and a missing layout', async () => {
  const cwd = await emptyFolder()
  const file = (name: string) => path.join(cwd, 'mails', name)
  await cp(templates, path.join(cwd, 'mails'), { recursive: true })
  await rm(file('exam-passed.md'))
  await cp(file('welcome.md'), file('welcome.mjml'))
  await writeFile(file('welcom.md'), 'a slip of the keyboard')
  const { mails, findings } = await lintFolder(path.join(cwd, 'mails'))
  expect(mails).toHaveLength(14)
  expect(findings.filter(({ id }) => id === 'template-broken')).toMatchObject([
    {
      location: { file: 'mails/exam-passed.md' },
      cause: expect.stringContaining('exam-passed has no template'),
    },
    { location: { file: 'mails/welcome.mjml' }, cause: expect.stringContaining('there is a welcome.md too') },
  ])
  expect(findings.filter(({ id }) => id === 'template-unused')).toMatchObject([
    { cause: 'No mail uses welcom.md.', severity: 'warning' },
  ])
  for (const gone of ['welcom.md', 'layout.mjml']) await rm(file(gone))
  const [only, ...others] = (await lintFolder(path.join(cwd, 'mails'), [])).findings
  expect(only).toMatchObject({ id: 'template-broken', location: { file: 'mails/layout.mjml' } })
  expect(others).toEqual([])
})
