import { execFileSync } from 'node:child_process'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openWorkshop } from '../../src/cli/preview/workshop.ts'
import { openPlatform } from '../../src/daemon/platform.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { emptyFolder } from '../support/folder.ts'
import { run as runIn } from '../support/run.ts'
import { testTransport } from '../support/test-transport.ts'

const template = (subject: string, body = 'The kiln is yours on Friday.') => `---
subject: ${subject}
preheader: A mail
slots:
  bookingUrl: { type: url, sample: https://www.example.com/ }
action: { label: Open, url: "{{bookingUrl}}" }
because: You booked a kiln.
---

# Hello

${body}
`

async function kilnSchool() {
  const folder = await emptyFolder()
  await mkdir(path.join(folder, 'mails'))
  const write = (text: string) => writeFile(path.join(folder, 'mails', 'kiln-booked.md'), text)
  await write(template('Your kiln'))
  const definition = { preset: 'base', name: 'Kiln School', mails: './mails' } as const
  const platform = (changed: object = {}) => resolvePlatform({ ...definition, ...changed }, { folder })
  const run = (...args: string[]) => runIn(['email', ...args], { cwd: folder, platform: platform() })
  return { folder, write, platform, run }
}

test('preflight fails on a mail that would keep the daemon from starting', async () => {
  const { folder, write, platform, run } = await kilnSchool()
  await write(template('Your kiln', 'Ready, {{nobody}}.'))
  expect(await runIn(['preflight'], { cwd: folder, platform: platform() })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /a mail does not compile: mails\/kiln-booked\.md:\d+: there is no slot nobody/,
    ),
  })
  expect((await run('lint')).stdout).toContain('Correct this line, or declare the slot under slots in')
})

test.skipIf(process.platform === 'win32')(
  'a pipe in place of a mail is refused, where reading it would wait for ever',
  async () => {
    const { folder, run } = await kilnSchool()
    await rm(path.join(folder, 'mails/kiln-booked.md'))
    execFileSync('mkfifo', [path.join(folder, 'mails/kiln-booked.md')])
    expect(await run('lint')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('it is not a regular file'),
    })
  },
)

test('lists, prints, builds and sends a mail from a definition’s folder together with those of the preset', async () => {
  const { folder, platform, run } = await kilnSchool()
  const long = 'kiln-booked-on-the-first-friday'
  await writeFile(path.join(folder, 'mails', `${long}.md`), template('Your Friday'))
  const list = (await run('list')).stdout
  expect(list).toMatch(/^kiln-booked {19}Your kiln$/m)
  expect(list).toContain(`${long} Your Friday\n`)
  expect((await run('render', 'kiln-booked', '--format', 'text')).stdout).toContain('The kiln is yours')
  expect(await run('build')).toEqual({
    code: 0,
    stdout: '12 mails in mails/compiled/mails.json\n',
    stderr: '',
  })
  const built = await readFile(path.join(folder, 'mails/compiled/mails.json'), 'utf8')
  expect(built).not.toMatch(/qubit|quantum/i)
  const sent: { subject: string; html: string }[] = []
  const opened = openPlatform({
    env: {},
    platform: platform(),
    mailer: testTransport(async (message) => {
      sent.push(message)
      return { kind: 'sent', id: 'one' }
    }),
  })
  const slots = { bookingUrl: 'https://www.example.com/bookings/7' }
  const mail = { template: 'kiln-booked', to: 'ada@example.com', slots, about: 'booking.7' }
  expect(await opened.sendEmail(mail)).toEqual({ sent: true, id: 'one' })
  expect(sent[0]).toMatchObject({ subject: 'Your kiln', html: expect.stringContaining('Kiln School') })
  await opened.close()
})

test('a fresh build is used as it is, and a template or translation that changed since is compiled', async () => {
  const { folder, write, platform, run } = await kilnSchool()
  await mkdir(path.join(folder, 'mails/de'))
  const translate = (body: string) =>
    writeFile(path.join(folder, 'mails/de/kiln-booked.md'), template('Dein Ofen', body))
  await translate('Am Freitag gehört er dir.')
  await run('build')
  const file = path.join(folder, 'mails/compiled/mails.json')
  await writeFile(file, (await readFile(file, 'utf8')).replaceAll('on Friday', 'as built'))
  const text = async (name = 'kiln-booked') => JSON.stringify((await platform().mails.compiled())[name]?.text)
  expect(await text()).toContain('as built')
  await translate('Am Samstag gehört er dir.')
  expect(await text('de/kiln-booked')).toContain('Samstag')
  await run('build')
  await write(template('Your kiln', 'Now it is Saturday.'))
  expect(await text()).toContain('Saturday')
})

test('a build that was made by another version, or for another name, color or language, is not fresh', async () => {
  const { folder, platform, run } = await kilnSchool()
  await run('build')
  const file = path.join(folder, 'mails/compiled/mails.json')
  const made = JSON.parse((await readFile(file, 'utf8')).replaceAll('on Friday', 'as built')) as object
  for (const [by, changed] of [
    [{ madeBy: '0.0.1' }, {}],
    [{}, { name: 'Oven School' }],
    [{}, { brand: { color: '#123456' } }],
    [{}, { brand: { language: 'en-GB' } }],
  ]) {
    await writeFile(file, JSON.stringify({ ...made, ...by }))
    const { text } = (await platform(changed).mails.compiled())['kiln-booked'] ?? {}
    expect(JSON.stringify(text), JSON.stringify({ by, changed })).toContain('on Friday')
  }
})

test('a build is fresh in another folder too, as in the image that it is copied into', async () => {
  const platformIn = (folder: string, pages: 'public' | false = 'public') =>
    resolvePlatform(
      {
        preset: 'base',
        name: 'Kiln School',
        mails: './mails',
        courses: { glazing: { lessons: './glazing', every: '1d', pages } },
      },
      { folder },
    )
  const { folder } = await kilnSchool()
  await mkdir(path.join(folder, 'glazing'))
  await writeFile(
    path.join(folder, 'glazing', '1-clay.md'),
    '---\nsubject: Clay\n---\nKnead it until Friday.\n',
  )
  await runIn(['email', 'build'], { cwd: folder, platform: platformIn(folder) })
  const image = path.join(await emptyFolder(), 'image')
  await cp(folder, image, { recursive: true })
  const file = path.join(image, 'mails/compiled/mails.json')
  await writeFile(file, (await readFile(file, 'utf8')).replaceAll('until Friday', 'as built'))
  const text = async (pages?: false) =>
    JSON.stringify((await platformIn(image, pages).mails.compiled())['glazing-1-clay']?.text)
  expect(await text()).toContain('as built')
  // Without pages the lesson has no link to one.
  expect(await text(false)).toContain('until Friday')
  await writeFile(
    path.join(image, 'glazing', '1-clay.md'),
    '---\nsubject: Clay\n---\nKnead it until Sunday.\n',
  )
  expect(await text()).toContain('until Sunday')
})

test('build of a broken template names file and line, exit 1, and leaves the build that is there', async () => {
  const { folder, write, run } = await kilnSchool()
  await run('build')
  const file = path.join(folder, 'mails/compiled/mails.json')
  const before = await readFile(file, 'utf8')
  await write(template('Your kiln', '{{bookingUrll}}'))
  const { code, stderr } = await run('build')
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /^platformctl: a mail does not compile: mails[\\/]kiln-booked\.md:12: there is no slot bookingUrll.* Nothing was written\.$/m,
  )
  expect(await readFile(file, 'utf8')).toBe(before)
  const list = await run('list')
  expect(list.code).toBe(2)
  expect(list.stderr).toMatch(/^platformctl: a mail does not compile: mails[\\/]kiln-booked\.md:12: .*\.\n$/)
})

/** A platform whose mail a service may request, and what its request is answered. */
async function requested(by: object) {
  const { folder } = await kilnSchool()
  const platform = resolvePlatform(
    { preset: 'base', mails: './mails', templates: { 'kiln-booked': { by: 'service', ...by } } },
    { folder },
  )
  const recipients: string[] = []
  const opened = openPlatform({
    env: {},
    platform,
    identify: async () => ({ kind: 'service' }),
    mailer: testTransport(async ({ to }) => {
      recipients.push(to.address)
      return { kind: 'sent', id: 'one' }
    }),
  })
  onTestFinished(() => opened.close())
  const post = async (body: object) => {
    const request = new Request('http://localhost/api/email', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer x' },
      body: JSON.stringify(body),
    })
    const answer = await opened.services.get('web')?.handler.fetch(request)
    return { status: answer?.status, body: await answer?.json() }
  }
  return { post, recipients }
}

const BOOKED = { to: 'ada@example.com', slots: { bookingUrl: 'https://kiln.example/7' }, about: 'booking.7' }

test('the definition decides who may request its mails over HTTP, and with which inputs', async () => {
  const { post, recipients } = await requested({
    inputs: ['bookingId'],
    resolve: ({ bookingId }: Record<string, string>) => (bookingId === '7' ? BOOKED : undefined),
  })
  const template = 'kiln-booked'
  expect(await post({ template, inputs: { bookingId: '7' } })).toMatchObject({ status: 200 })
  expect(await post({ template, inputs: { bookingId: '8' } })).toMatchObject({ status: 404 })
  for (const refused of [
    { template, inputs: { bookingId: '7', to: 'x@example.com' } },
    { template: 'exam-passed', inputs: { examAttemptId: '1' } },
  ])
    expect(await post(refused)).toMatchObject({ status: 400 })
  expect(recipients).toEqual(['ada@example.com'])
})

test('a resolve that gives null has no record, and one that gives something else sends nothing and says so', async () => {
  let given: unknown
  const { post } = await requested({ resolve: async () => given })
  const answerTo = (result: unknown) => {
    given = result
    return post({ template: 'kiln-booked', inputs: {} })
  }
  for (const none of [undefined, null]) expect(await answerTo(none)).toMatchObject({ status: 404 })
  for (const wrong of [
    'ada@example.com',
    {},
    { ...BOOKED, to: 7 },
    { ...BOOKED, about: undefined },
    { ...BOOKED, slots: { bookingUrl: 7 } },
    { ...BOOKED, slots: null },
    { answer: { kind: 'sent', id: 'forged' } },
  ])
    expect(await answerTo(wrong)).toEqual({
      status: 200,
      body: { sent: false, reason: 'resolve of this template did not give { to, slots, about }' },
    })
  expect(await answerTo(BOOKED)).toEqual({ status: 200, body: { sent: true, id: 'one' } })
})

test('the preview shows a mail and a lesson of a definition anew when its file is saved', async () => {
  const { folder, write } = await kilnSchool()
  await mkdir(path.join(folder, 'first-firing'))
  const lesson = (heading: string) => `---
subject: Clay
preheader: A lesson
slots:
  lessonUrl: { type: url, sample: https://www.example.com/lessons/1 }
  unsubscribeUrl: { type: url, sample: https://www.example.com/u }
action: { label: Read, url: "{{lessonUrl}}" }
because: You asked for lessons.
---

# ${heading}
`
  const lessonFile = path.join(folder, 'first-firing', '1-clay.md')
  await writeFile(lessonFile, lesson('Clay'))
  const platform = resolvePlatform(
    { preset: 'base', mails: './mails', courses: { 'first-firing': { lessons: './first-firing' } } },
    { folder },
  )
  const workshop = openWorkshop(platform.mails)
  onTestFinished(() => workshop.close())
  const saved: string[] = []
  workshop.onSave((names) => saved.push(...names))
  const html = async (name: string) => (await workshop.rendered(name)).html
  expect(await html('kiln-booked')).toContain('The kiln is yours')
  expect(await html('first-firing-1-clay')).toContain('>Clay<')
  await write(template('Your kiln', 'The kiln waits for you.'))
  await writeFile(lessonFile, lesson('Porcelain'))
  await expect.poll(() => saved).toContain('first-firing-1-clay')
  await expect.poll(() => saved).toContain('kiln-booked')
  expect(await html('kiln-booked')).toContain('The kiln waits for you')
  expect(await html('first-firing-1-clay')).toContain('>Porcelain<')
})

test('a start with an old build and a broken template sends nothing old, and names file and line', async () => {
  const { write, platform, run } = await kilnSchool()
  expect((await run('build')).code).toBe(0)
  await write(template('Your kiln', 'Hello {{nobody}}'))
  await expect(platform().mails.compiled()).rejects.toMatchObject({
    name: 'TemplateError',
    message: expect.stringMatching(/kiln-booked\.md:\d+/),
  })
  // Mended, the next mail goes out without a restart.
  const running = platform()
  await expect(running.mails.compiled()).rejects.toThrow()
  await write(template('Your kiln'))
  expect((await running.mails.compiled())['kiln-booked']?.subject).toBeDefined()
})

test('a lesson with only a subject links to its page and to unsubscribing, and passes lint', async () => {
  const { folder } = await kilnSchool()
  await mkdir(path.join(folder, 'lessons'))
  await writeFile(
    path.join(folder, 'lessons/1-clay.md'),
    '---\nsubject: Wedging the clay\n---\n\n# Wedging the clay\n\nStart with a stoneware body with fine grog.\n',
  )
  const course = { lessons: './lessons', every: '2d' }
  const platform = resolvePlatform({ preset: 'base', courses: { firing: course } }, { folder })
  const run = (...args: string[]) => runIn(['email', ...args], { cwd: folder, platform })
  const { stdout } = await run('render', 'firing-1-clay', '--format', 'text')
  expect(stdout).toMatch(/^Read it in your browser: http/m)
  expect(stdout).toMatch(/^Unsubscribe: http/m)
  expect((await run('lint', '--strict')).code).toBe(0)
})
