import { mkdir, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { DAY_MS, HOUR_MS } from '../../../src/core/durations.ts'
import { systemClock } from '../../../src/core/host.ts'
import { compileFolders } from '../../../src/core/mail/compile/compile.ts'
import type { Message } from '../../../src/core/mail/mailer.ts'
import { mailIn } from '../../../src/core/mail/template.ts'
import { readPackageFile } from '../../../src/core/package-files.ts'
import { noticeSlots } from '../../../src/daemon/open/course.ts'
import { openPlatform } from '../../../src/daemon/platform.ts'
import { mailTypes } from '../../../src/platform/env-types.ts'
import { resolvePlatform } from '../../../src/platform/resolve.ts'
import { base } from '../../../src/presets/base/platform.ts'
import { testContext } from '../../support/context.ts'
import { emptyFolder } from '../../support/folder.ts'
import { testTransport } from '../../support/test-transport.ts'

const lesson = (subject: string) => `---
subject: ${subject}
preheader: A lesson
slots:
  lessonUrl: { type: url, sample: https://www.example.com/lessons/1 }
  unsubscribeUrl: { type: url, sample: https://www.example.com/unsubscribe }
action: { label: Open, url: "{{lessonUrl}}" }
because: You asked for it.
---

# ${subject}

A kiln is an oven that burns clay at more than a thousand degrees, for hours, until it is stone.
`

const TON = { ton: { lessons: './ton', every: '1d' } }

/** A course of two lessons, of which the first is in German too. */
async function school() {
  const folder = await emptyFolder()
  const write = async (file: string, text: string) => {
    await mkdir(path.dirname(path.join(folder, file)), { recursive: true })
    await writeFile(path.join(folder, file), text)
  }
  await write('firing/1-clay.md', lesson('Clay'))
  await write('firing/2-fire.md', lesson('Fire'))
  await write('firing/de/1-clay.md', lesson('Ton'))
  const definition = {
    preset: 'base',
    name: 'Kiln School',
    courses: { firing: { lessons: './firing', every: '1d' } },
  }
  return { folder, write, platform: () => resolvePlatform(definition, { folder }) }
}

/** A platform that is running, with the mails that it has sent. */
function running(platform: ReturnType<typeof resolvePlatform>, folder: string) {
  const sent: Message[] = []
  let now = Date.UTC(2026, 5, 1)
  const opened = openPlatform({
    env: { STORE_URL: `sqlite:${folder}/store.sqlite` },
    platform,
    clock: { ...systemClock, now: () => now },
    mailer: testTransport(async (message) => {
      sent.push(message)
      return { kind: 'sent', id: 'one' }
    }),
  })
  onTestFinished(() => opened.close())
  const pass = (ms: number) => {
    now += ms
  }
  return { ...opened, sent, pass }
}
const languageOf = ({ html }: Message) => /lang="(..)"/.exec(html)?.[1]

interface Finding {
  readonly id: string
  readonly cause: string
  readonly fix: string
  readonly location: { readonly file: string }
}

/** What `email lint` says of a platform, or of some of its mails, and its exit code. */
async function lint({ mails, ...rest }: ReturnType<typeof resolvePlatform>, cwd: string, only = /./) {
  const definitions = mails.definitions.filter(({ name }) => only.test(name))
  const { context, stdout } = testContext({ cwd, platform: { ...rest, mails: { ...mails, definitions } } })
  const code = await runProgram(['email', 'lint', '--format', 'json', '--notices'], context)
  const report: { mails: { name: string }[]; findings: Finding[] } = JSON.parse(stdout())
  return { ...report, code, of: (id: string) => report.findings.filter((one) => one.id === id) }
}

test('a folder whose name only looks like a language tag holds no translations', async () => {
  const { write, platform } = await school()
  for (const name of ['old-v2', 'en-12', 'de-de-de', 'img'])
    await write(`firing/${name}/1-clay.md`, lesson('Old clay'))
  const names = platform().mails.definitions.flatMap(({ name, lesson: is }) => (is ? name : []))
  expect(names).toEqual(['firing-1-clay', 'firing-2-fire', 'de/firing-1-clay'])
})

test('a lesson goes out in the language of its reader, in that of the platform where it has no translation', async () => {
  const { platform, folder } = await school()
  const { sent, pass, courses, dispatch } = running(platform(), folder)
  for (const [email, language] of Object.entries({ en: undefined, de: 'de', at: 'de-AT', fr: 'fr' }))
    await courses.enrol({ email: `${email}@example.com`, ...(language && { language }) })
  await dispatch({ limit: 10 })
  const htmlTo = (name: string) => sent.find(({ to }) => to.address === `${name}@example.com`)?.html
  const subjects = () =>
    Object.fromEntries(sent.splice(0).map(({ to, subject }) => [to.address.split('@')[0], subject]))
  expect(htmlTo('at')).toMatch(/<html lang="de"[^>]* dir="ltr"/)
  expect(htmlTo('at')).toContain('Abmelden')
  expect(htmlTo('fr')).toMatch(/<html lang="en"[^>]* dir="ltr"/)
  expect(subjects()).toEqual({ en: 'Clay', de: 'Ton', at: 'Ton', fr: 'Clay' })
  pass(DAY_MS)
  await dispatch({ limit: 10 })
  expect(subjects()).toEqual({ en: 'Fire', de: 'Fire', at: 'Fire', fr: 'Fire' })
})

test('the preset’s own translations are used in the languages of the platform, and an own mail is not replaced by them', async () => {
  const { folder, platform, write } = await school()
  const names = () => platform().mails.definitions.map(({ name }) => name)
  expect(names().filter((name) => name.startsWith('de/'))).toEqual([
    'de/subscription-confirmation',
    'de/status-confirmation',
    'de/status-notice',
    'de/magic-link',
    'de/welcome',
    'de/firing-1-clay',
  ])
  // A translation of a sign-in mail is one too, so its link is not stored.
  const signIn = { to: 'ada@example.com', slots: { signInUrl: 'https://www.example.com/' }, durable: true }
  expect(await running(platform(), folder).mail.send('de/magic-link', signIn)).toMatchObject({
    sent: false,
    reason: expect.stringContaining('a sign-in mail is queued by POST /api/email'),
  })
  const compiled = await platform().mails.compiled()
  // Code names a mail, and the language beside it.
  expect(mailTypes(platform().mails.definitions, compiled)).not.toMatch(/de\//)
  expect(mailIn(compiled, 'welcome', 'de-CH')?.html[0]).toContain('lang="de"')
  expect(mailIn(compiled, 'welcome', 'fr')?.html[0]).toContain('lang="en"')
  await write('firing/en/1-clay.md', lesson('Clay'))
  expect(names()).toContain('en/firing-1-clay')
})

test('a platform in German with a lesson in English has the preset’s mails in English too', async () => {
  const { folder, write } = await school()
  await write('ton/1-ton.md', lesson('Ton'))
  await write('ton/en/1-ton.md', lesson('Clay'))
  const definition = { preset: 'base', courses: TON }
  for (const language of ['de', 'DE-at']) {
    const compiled = await resolvePlatform(
      { ...definition, brand: { language } },
      { folder },
    ).mails.compiled()
    for (const mail of ['subscription-confirmation', 'magic-link', 'welcome']) {
      expect(mailIn(compiled, mail, 'en-GB')?.html[0]).toContain('lang="en"')
      expect(mailIn(compiled, mail, 'fr')?.html[0]).toMatch(/lang="de/i)
    }
  }
})

test('the package’s mails go out in every language that they ship in, without a mail or lesson of one’s own in it', async () => {
  const { folder, write } = await school()
  await write('ton/1-ton.md', lesson('Ton'))
  const platforms: readonly (readonly [own: string, other: string, definition: object])[] = [
    ['de', 'en', { brand: { language: 'de' } }],
    ['de', 'en-GB', { brand: { language: 'de' }, courses: TON }],
    ['en', 'de-AT', {}],
    ['en', 'de', { courses: TON }],
  ]
  for (const [own, other, definition] of platforms) {
    const { mails } = resolvePlatform({ preset: 'base', name: 'Kiln School', ...definition }, { folder })
    const compiled = await mails.compiled()
    for (const { name } of base.mails.definitions) {
      const languageFor = (reader: string) => {
        const html = mailIn(compiled, name, reader)?.html.join('')
        expect(html).toContain('Kiln School')
        return /lang="([^"]*)/.exec(html ?? '')?.[1]
      }
      expect([own, other, 'fr'].map(languageFor)).toEqual([own, other.slice(0, 2), own])
    }
    // The files of each are those that it was compiled from.
    expect(Object.keys(compiled).sort()).toEqual(mails.definitions.map(({ name }) => name).sort())
    expect(await compileFolders(mails)).toEqual(compiled)
    expect(mailTypes(mails.definitions, compiled)).not.toMatch(/(?:de|en)\//)
  }
})

test('a reader of English is asked to confirm in English on a platform in German, and hears of incidents in English', async () => {
  const { folder, write } = await school()
  await write('ton/1-ton.md', lesson('Ton'))
  const definition = { brand: { language: 'de' }, courses: TON }
  const platform = resolvePlatform({ preset: 'base', ...definition }, { folder })
  const { sent, courses, close } = running(platform, folder)
  for (const language of ['en', 'de', 'fr'])
    await courses.subscribe({ email: `${language}@example.com`, language })
  await close()
  const languages = sent.map((message) => `${message.to.address.slice(0, 2)} in ${languageOf(message)}`)
  expect(languages.sort()).toEqual(['de in de', 'en in en', 'fr in de'])
  const notice = { subject: 'a', kind: 'opened', at: 0, facts: { from: 0, cause: 'store' } } as const
  expect(noticeSlots(platform, 'https://www.example.com', notice, 'en')).toMatchObject({
    title: expect.stringContaining('is not working'),
    statusUrl: 'https://www.example.com/?language=en',
  })
})

test('lint asks for no translation into a language that only the package’s mails are in', async () => {
  const { folder, write } = await school()
  await write('ton/1-ton.md', lesson('Ton'))
  await write('mails/layout.mjml', await readPackageFile('templates/base/layout.mjml'))
  const definition = { preset: 'base', brand: { language: 'de' }, mails: './mails', courses: TON } as const
  const platform = resolvePlatform(definition, { folder })
  const { mails, of } = await lint(platform, folder, /welcome|ton/)
  expect(mails.map(({ name }) => name)).toContain('en/welcome')
  expect(of('translation-missing')).toEqual([])
})

test('a mail of the package has the platform’s own layout in every language', async () => {
  const { folder, write } = await school()
  const layout = await readPackageFile('templates/base/layout.mjml')
  await write(
    'mails/layout.mjml',
    layout.replace('</mj-body>', '<mj-raw><p>Kiln Lane 7</p></mj-raw></mj-body>'),
  )
  await write('mails/own.md', '---\nsubject: Own\n---\n\nHello.')
  for (const language of ['de', 'en']) {
    const definition = { preset: 'base', brand: { language }, mails: './mails' }
    const compiled = await resolvePlatform(definition, { folder }).mails.compiled()
    for (const { html } of Object.values(compiled)) expect(html.join('')).toContain('Kiln Lane 7')
  }
})

test('a layout and a mail of one’s own in German serve the package’s mails and the readers of de-AT', async () => {
  const { folder, write } = await school()
  const layout = await readPackageFile('templates/base/layout.mjml')
  const withText = (text: string) => layout.replace('</mj-body>', `<mj-raw><p>${text}</p></mj-raw></mj-body>`)
  await write('mails/layout.mjml', withText('Kiln Lane 7'))
  await write('mails/de/layout.mjml', withText('Ofenweg 7'))
  await write('mails/de/welcome.md', '---\nsubject: Servus\n---\n\n[Los]({{startUrl}})')
  await write('firing/de-AT/1-clay.md', lesson('Lehm'))
  await write('mails/magic-link.md', '---\nsubject: Sign in here\n---\n\n[In]({{signInUrl}})')
  const definition = {
    preset: 'base',
    mails: './mails',
    courses: { firing: { lessons: './firing', every: '1d' } },
  }
  const compiled = await resolvePlatform(definition, { folder }).mails.compiled()
  for (const language of ['de', 'de-AT', 'de-CH'])
    expect(mailIn(compiled, 'welcome', language)?.subject.join('')).toBe('Servus')
  expect(mailIn(compiled, 'firing-1-clay', 'de-AT')?.subject).toEqual(['Lehm'])
  // The text of one's own replaces the package's translations too.
  expect(mailIn(compiled, 'magic-link', 'de')?.subject).toEqual(['Sign in here'])
  expect(mailIn(compiled, 'status-notice', 'de')?.html.join('')).toContain('Ofenweg 7')
  expect(mailIn(compiled, 'status-notice', 'en')?.html.join('')).toContain('Kiln Lane 7')
})

test('lessons of the platform’s language may be in a folder of that name, beside the other languages', async () => {
  const { write, folder } = await school()
  await write('glazing/en/1-glass.md', lesson('Glass'))
  await write('glazing/de/1-glass.md', lesson('Glas'))
  const { mails, courses } = resolvePlatform(
    { preset: 'base', courses: { glazing: { lessons: './glazing', every: '1d' } } },
    { folder },
  )
  expect(courses[0]?.lessons).toEqual(['glazing-1-glass'])
  const compiled = await mails.compiled()
  expect(mailIn(compiled, 'glazing-1-glass', undefined)?.subject).toEqual(['Glass'])
  expect(mailIn(compiled, 'glazing-1-glass', 'de')?.subject).toEqual(['Glas'])
})

test('reads a lesson saved by Notepad, with a byte order mark and CRLF, like any other', async () => {
  const { platform, folder, write } = await school()
  await write('firing/2-fire.md', `\uFEFF${lesson('Fire').replaceAll('\n', '\r\n')}`)
  const { context, stdout } = testContext({ cwd: folder, platform: platform() })
  expect(await runProgram(['email', 'render', 'firing-2-fire', '--format', 'text'], context)).toBe(0)
  expect(stdout()).toContain('A kiln is an oven')
})

test('lint covers every language, and names what has no translation, translations of nothing, and lessons that cannot be read', async () => {
  const { platform, folder, write } = await school()
  await write('firing/de/3-lost.md', lesson('Verloren'))
  await write('firing/3-glaze.mjml', lesson('Glaze').replace(/\n# .*$/s, '\n<mj-text>Glaze</mj-text>\n'))
  await write('firing/fr/1-clay.md', lesson('L’argile'))
  await write('firing/it_IT/1-clay.md', lesson('L’argilla'))
  await symlink('gone.md', path.join(folder, 'firing/3-gone.md'))
  await mkdir(path.join(folder, 'notes'))
  await symlink('../notes', path.join(folder, 'firing/4-notes.md'))
  await writeFile(path.join(folder, 'firing/6-latin.md'), Buffer.from(lesson('Glühen'), 'latin1'))
  await write('firing/5-both.md', lesson('Both'))
  await write('firing/5-both.mjml', lesson('Both'))
  const { mails, findings, code, of } = await lint(platform(), folder)
  expect(mails.map(({ name }) => name)).toContain('de/firing-1-clay')
  const fixOf = (mail: string) => findings.find(({ cause }) => cause.startsWith(`${mail} has no`))?.fix
  expect(fixOf('firing-3-glaze')).toBe(
    'Add de/3-glaze.mjml and fr/3-glaze.mjml to the folder of the original.',
  )
  expect(fixOf('firing-1-clay')).toBeUndefined()
  // A mail of the package is translated in the platform's own folder.
  expect(fixOf('welcome')).toBe('Add fr/welcome.md to the folder that mails of the definition names.')
  expect(of('translation-missing').map(({ location }) => location.file)).toContain('firing/2-fire.md')
  expect(of('template-unused')).toMatchObject([
    { location: { file: 'firing/de/3-lost.md' } },
    { cause: 'No mail uses it_IT.', fix: 'Name the folder it-IT.' },
  ])
  expect(code).toBe(1)
  const broken = of('template-broken')
  expect(broken.map(({ location }) => location.file)).toEqual([
    'firing/3-gone.md',
    'firing/4-notes.md',
    'firing/5-both.mjml',
    'firing/6-latin.md',
  ])
  expect(broken.map(({ cause }) => cause)).toContain(
    'The template does not compile: it is not UTF-8, the encoding of every template.',
  )
  // Compiled, they are a fault that names the whole path.
  await expect(platform().mails.compiled()).rejects.toThrow(
    new RegExp(`^${folder}/firing/(?:3-gone|4-notes|5-both|6-latin)\\.`),
  )
})

test('a confirmation is in the language of the request, also when it is mailed again', async () => {
  const { platform, folder } = await school()
  const { sent, pass, ...opened } = running(platform(), folder)
  const course = await opened.course()
  const ada = 'ada@example.com'
  await course.subscribe({ spelling: ada, identity: ada, language: 'de' })
  await course.close()
  pass(2 * HOUR_MS)
  await course.confirmAgain(ada, { wait: true })
  expect(sent.map(languageOf)).toEqual(['de', 'de'])
})

test('lint says what stays in English on a platform in a language that the engine does not speak', async () => {
  const { folder, write } = await school()
  const definition = { preset: 'base', name: 'École', brand: { language: 'fr' }, mails: './mails' }
  await write('mails/welcome.md', '---\nsubject: Bienvenue\n---\n\nBonjour à vous.')
  const alone = await lint(resolvePlatform(definition, { folder }), folder)
  expect(alone.of('translation-missing').map(({ cause }) => cause)).toEqual(
    ['magic-link', 'status-confirmation', 'status-notice', 'subscription-confirmation'].map(
      (mail) => `${mail} is in English, and the platform is in French: every reader gets it in English.`,
    ),
  )
  expect(alone.of('language-unspoken')).toMatchObject([{ fix: expect.stringContaining('action: in French') }])
  await write('mails/de/welcome.md', '---\nsubject: Willkommen\n---\n\nGuten Tag.')
  await write('mails/pl/welcome.md', '---\nsubject: Witamy\n---\n\nDzień dobry.')
  const { of } = await lint(resolvePlatform(definition, { folder }), folder, /welcome/)
  expect(of('language-unspoken').map(({ cause }) => cause)).toEqual(
    ['French', 'Polish'].map(
      (language) =>
        `platformctl does not speak ${language}: to readers of ${language}, its pages and what it adds to a mail are in English.`,
    ),
  )
})
