import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { createCatalog } from '../../../src/core/course/catalog.ts'
import type { CourseStore } from '../../../src/core/course/store.ts'
import { systemClock } from '../../../src/core/host.ts'
import type { LessonTexts } from '../../../src/core/mail/definition.ts'
import { readLessonTexts } from '../../../src/core/mail/folder-mails.ts'
import { openPlatform } from '../../../src/daemon/platform.ts'
import type { PlatformDefinition } from '../../../src/platform/definition.ts'
import { resolvePlatform } from '../../../src/platform/resolve.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { testContext } from '../../support/context.ts'
import { courseWith } from '../../support/course.ts'
import { emptyFolder } from '../../support/folder.ts'
import { KEPT, postgresServer } from '../../support/stores.ts'
import { testTransport } from '../../support/test-transport.ts'

const DAY_MS = 86_400_000
const lesson = (subject: string) => `---\nsubject: ${subject}\n---\n\n# ${subject}\n\nA kiln burns clay.\n`

/** A school whose lessons are files, and that can be opened again and again over one store. */
async function school(kind: 'sqlite' | 'postgres', course: Partial<PlatformDefinition['courses']> = {}) {
  const folder = await emptyFolder()
  const url =
    kind === 'sqlite' ? `file:${folder}/store.sqlite` : await (await postgresServer()).createDatabase()
  const write = async (file: string, text: string) => {
    await mkdir(path.dirname(path.join(folder, file)), { recursive: true })
    await writeFile(path.join(folder, file), text)
  }
  await write('firing/1-clay.md', lesson('Clay'))
  await write('firing/2-fire.md', lesson('Fire'))
  await write('firing/3-glaze.md', lesson('Glaze'))
  await write('firing/de/2-fire.md', lesson('Feuer'))
  const definition = {
    preset: 'base',
    name: 'Kiln School',
    courses: { firing: { lessons: './firing', every: '1d' }, ...course },
  } as const
  let now = Date.UTC(2026, 5, 1)
  const sent: { readonly to: string; readonly subject: string; readonly html: string }[] = []
  const open = () =>
    openPlatform({
      env: { EMAIL_LINK_SECRET: 'a secret that signs the links', STORE_URL: url },
      platform: resolvePlatform(definition, { folder }),
      clock: { ...systemClock, now: () => now },
      mailer: testTransport(async ({ to, subject, html }) => {
        sent.push({ to: to.address.split('@')[0] ?? '', subject, html })
        return { kind: 'sent', id: 'one' }
      }),
    })
  /** Runs one day's dispatch in a process that starts with the current files. */
  const dispatchOnce = async () => {
    const opened = open()
    const result = await opened.dispatch({ limit: 100 })
    await opened.close()
    return { ...result, subjects: Object.fromEntries(sent.splice(0).map(({ to, subject }) => [to, subject])) }
  }
  const enrol = async (name: string, language?: string) => {
    const opened = open()
    await opened.courses.enrol({ email: `${name}@example.com`, ...(language && { language }) })
    await opened.close()
  }
  /** Changes rows behind the platform's back. */
  const query = async (sql: string): Promise<readonly Record<string, unknown>[]> => {
    if (kind === 'postgres')
      return (await (await postgresServer()).query(url, sql.replaceAll('course_', 'platformctl.course_')))
        .rows
    const database = new Database(`${folder}/store.sqlite`)
    const statement = database.prepare(sql)
    const rows = statement.reader ? statement.all() : [statement.run()]
    database.close()
    return rows as Record<string, unknown>[]
  }
  const verify = async () => {
    const { context, stdout } = testContext({ cwd: folder, env: { STORE_URL: url } })
    const code = await runProgram(['db', 'verify', '--format', 'json'], context)
    return { code, stdout: stdout() }
  }
  /** Does the work of the hourly schedule. */
  const prune = async () => {
    const opened = open()
    await (await opened.course()).prunePlans()
    await opened.close()
    const [texts, plans] = await Promise.all([
      query('SELECT hash FROM course_text'),
      query('SELECT version FROM course_plan'),
    ])
    return { texts: texts.length, plans: plans.length }
  }
  return {
    query,
    verify,
    prune,
    folder,
    url,
    file: (name: string) => path.join(folder, name),
    write,
    open,
    enrol,
    dispatchOnce,
    sent,
    pass: (ms: number) => {
      now += ms
    },
    now: () => now,
  }
}

describe.each(KEPT)('on %s', (kind) => {
  test('lessons that are edited, renamed, deleted or translated later still reach those enrolled before as they were', async () => {
    const it = await school(kind)
    await it.enrol('ada')
    await it.enrol('bert', 'de')
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Clay', bert: 'Clay' })
    await it.write('firing/2-fire.md', lesson('Fire, revised'))
    await it.write('firing/de/2-fire.md', lesson('Feuer, neu'))
    await it.write('firing/de/3-glaze.md', lesson('Glasur'))
    await rename(it.file('firing/3-glaze.md'), it.file('firing/4-glazing.md'))
    await rename(it.file('firing/de/3-glaze.md'), it.file('firing/de/4-glazing.md'))
    await rm(it.file('firing/1-clay.md'))
    await it.enrol('cleo', 'de')
    it.pass(DAY_MS)
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Fire', bert: 'Feuer', cleo: 'Feuer, neu' })
    it.pass(DAY_MS)
    // There was no German third lesson when Bert enrolled.
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Glaze', bert: 'Glaze', cleo: 'Glasur' })
  })

  test('with follow: latest everybody gets the newest text', async () => {
    const it = await school(kind, { firing: { lessons: './firing', every: '1d', follow: 'latest' } })
    await it.enrol('ada')
    await it.write('firing/1-clay.md', lesson('Clay, revised'))
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Clay, revised' })
  })

  test('sends the current text in place of a damaged one, and db verify names it', async () => {
    const it = await school(kind)
    await it.enrol('ada')
    await it.write('firing/1-clay.md', lesson('Clay, revised'))
    expect((await it.verify()).code).toBe(0)
    await it.query("UPDATE course_text SET source = 'no front matter' WHERE source LIKE '%subject: Clay%'")
    const verified = await it.verify()
    expect(verified.code).toBe(1)
    expect(verified.stdout).toMatch(/course firing: the lesson text [\w-]+ of version [\w-]+ was changed/)
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Clay, revised' })
    await it.query("DELETE FROM course_text WHERE source LIKE '%subject: Fire%'")
    expect((await it.verify()).stdout).toContain('is missing')
    await it.write('firing/2-fire.md', lesson('Fire, revised'))
    it.pass(DAY_MS)
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Fire, revised' })
  })

  test('a plan that is damaged holds up nobody: its readers go on with the course as it is', async () => {
    const it = await school(kind)
    await it.enrol('ada')
    await it.write('firing/2-fire.md', lesson('Fire, revised'))
    await it.enrol('bert')
    await it.query("UPDATE course_plan SET plan = '{'")
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Clay', bert: 'Clay' })
  })

  test('a lesson without any text left waits until its file is back, and blocks no other', async () => {
    const it = await school(kind)
    for (const name of ['ada', 'bert', 'carl', 'dora', 'emil', 'fred']) await it.enrol(name)
    await rm(it.file('firing/1-clay.md'))
    await it.query("DELETE FROM course_text WHERE source LIKE '%subject: Clay%'")
    await it.enrol('gina')
    const held = await it.dispatchOnce()
    expect(held.subjects).toEqual({ gina: 'Fire' })
    expect(held).toMatchObject({ sent: 1, failed: 6, waiting: 6 })
    expect(held.results.find(({ sent }) => !sent)?.reason).toBe(
      'the platform has no lesson firing-1-clay: put its file back',
    )
    await it.write('firing/1-clay.md', lesson('Clay, found'))
    it.pass(2 * 60 * 60 * 1000)
    expect(Object.keys((await it.dispatchOnce()).subjects)).toHaveLength(6)
  })

  test('texts and plans are deleted a day after the last reader of them has finished, and no earlier', async () => {
    const it = await school(kind)
    await it.enrol('ada')
    await it.write('firing/1-clay.md', lesson('Clay, revised'))
    await it.enrol('bert')
    expect(await it.prune()).toEqual({ texts: 5, plans: 2 })
    for (let day = 0; day < 2; day += 1) {
      await it.dispatchOnce()
      it.pass(DAY_MS)
      expect(await it.prune()).toEqual({ texts: 5, plans: 2 })
    }
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Glaze', bert: 'Glaze' })
    expect(await it.prune()).toEqual({ texts: 5, plans: 2 })
    // Somebody whose process still has the old files begins with the old plan, which is then not deleted.
    await it.write('firing/1-clay.md', lesson('Clay'))
    await it.enrol('cleo')
    await it.write('firing/1-clay.md', lesson('Clay, revised'))
    it.pass(DAY_MS)
    expect(await it.prune()).toEqual({ texts: 5, plans: 2 })
    expect((await it.dispatchOnce()).subjects).toEqual({ cleo: 'Clay' })
    it.pass(DAY_MS)
    await it.dispatchOnce()
    it.pass(DAY_MS)
    await it.dispatchOnce()
    expect(await it.prune()).toEqual({ texts: 5, plans: 2 })
    it.pass(DAY_MS)
    expect(await it.prune()).toEqual({ texts: 4, plans: 1 })
    expect((await it.verify()).code).toBe(0)
  })

  test('the preset’s lessons are kept like any others; while nothing is edited no dispatch asks the store for one', async () => {
    const courses = learning.courses.map((course) => ({ ...course, follow: 'start' as const }))
    const texts = await readLessonTexts(learning.mails)
    const edited: LessonTexts = {
      ...texts,
      of(lesson) {
        const [original] = [texts.of(lesson)?.['']]
        return original && { '': { ...original, hash: `edited ${original.hash}` } }
      },
    }
    const catalogOf = (of: LessonTexts) => createCatalog(courses, { texts: async () => of })
    const it = await courseWith(0, { kind, catalog: catalogOf(texts) })
    const people = Array.from({ length: 20 }, (_, n) => `p${n}@example.com`)
    for (const one of people) await it.course.enrol({ spelling: one, identity: one })
    const asked: string[] = []
    const counting: CourseStore = {
      ...it.store.course,
      pinnedPlan(plan) {
        asked.push('plan')
        return it.store.course.pinnedPlan(plan)
      },
      lessonText(hash) {
        asked.push('text')
        return it.store.course.lessonText(hash)
      },
    }
    await it.open(counting, { catalog: catalogOf(texts) }).dispatch({ limit: 10 })
    expect([it.messages.length, asked]).toEqual([10, []])
    // The other half from the store: byte for byte what the package ships compiled.
    await it.open(counting, { catalog: catalogOf(edited) }).dispatch({ limit: 10 })
    expect(asked.sort()).toEqual(['plan', 'text'])
    const bytes = it.messages.map(({ subject, source }) => [subject, source?.compiled])
    expect(bytes).toHaveLength(20)
    expect(new Set(bytes.map((one) => JSON.stringify(one))).size).toBe(1)
  })
})
