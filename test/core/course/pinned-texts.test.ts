import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { createCatalog } from '../../../src/core/course/catalog.ts'
import type { CourseStore } from '../../../src/core/course/store.ts'
import type { StoreAddress } from '../../../src/core/env/settings.ts'
import { systemClock } from '../../../src/core/host.ts'
import type { LessonTexts } from '../../../src/core/mail/definition.ts'
import { readLessonTexts } from '../../../src/core/mail/folder-mails.ts'
import type { Message } from '../../../src/core/mail/mailer.ts'
import { type OpenedPlatform, openPlatform } from '../../../src/daemon/platform.ts'
import type { PlatformDefinition } from '../../../src/platform/definition.ts'
import { resolvePlatform } from '../../../src/platform/resolve.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { byHand } from '../../support/by-hand.ts'
import { testContext } from '../../support/context.ts'
import { courseWith } from '../../support/course.ts'
import { emptyFolder } from '../../support/folder.ts'
import { addressOf, KEPT } from '../../support/stores.ts'
import { testTransport } from '../../support/test-transport.ts'

const DAY_MS = 86_400_000

/** A school whose lessons are files, over one store; its process starts anew whenever they, or rows, are changed. */
async function school(kind: 'sqlite' | 'postgres', course: Partial<PlatformDefinition['courses']> = {}) {
  const folder = await emptyFolder()
  const address = (await addressOf(kind)) as StoreAddress
  const url = address.kind === 'sqlite' ? `file:${address.file}` : address.url.reveal()
  const definition = {
    preset: 'base',
    name: 'Kiln School',
    courses: { firing: { lessons: './firing', every: '1d' }, ...course },
  } as const
  let now = Date.UTC(2026, 5, 1)
  const sent: Message[] = []
  let opened: OpenedPlatform | undefined
  const running = () => {
    opened ??= openPlatform({
      env: { EMAIL_LINK_SECRET: 'a secret that signs the links', STORE_URL: url },
      platform: resolvePlatform(definition, { folder }),
      clock: { ...systemClock, now: () => now },
      mailer: testTransport(async (message) => {
        sent.push(message)
        return { kind: 'sent', id: 'one' }
      }),
    })
    return opened
  }
  const stop = async () => {
    await opened?.close()
    opened = undefined
  }
  onTestFinished(stop)
  const file = (name: string) => path.join(folder, 'firing', name)
  const write = async (name: string, subject: string) => {
    const text = `---\nsubject: ${subject}\n---\n\n# ${subject}\n\nA kiln burns clay.\n`
    await mkdir(path.dirname(file(name)), { recursive: true })
    await writeFile(file(name), text)
    await stop()
  }
  await write('1-clay.md', 'Clay')
  await write('2-fire.md', 'Fire')
  await write('3-glaze.md', 'Glaze')
  await write('de/2-fire.md', 'Feuer')
  return {
    write,
    move: async (from: string, to: string) => {
      await rename(file(from), file(to))
      await stop()
    },
    remove: async (name: string) => {
      await rm(file(name))
      await stop()
    },
    /** Changes rows behind the platform's back. */
    change: async (sql: string) => {
      await byHand(address, sql)
      await stop()
    },
    changeBeside: (statement: string) => byHand(address, statement),
    async enrol(...people: { name: string; language?: string; course?: string }[]) {
      for (const { name, ...more } of people)
        await running().courses.enrol({ email: `${name}@example.com`, ...more })
    },
    async dispatchOnce() {
      const result = await running().dispatch({ limit: 100 })
      const subjects = sent.splice(0).map(({ to, subject }) => [to.address.split('@')[0], subject])
      return { ...result, subjects: Object.fromEntries(subjects) as Record<string, string> }
    },
    verify: async () => {
      const { context, stdout } = testContext({ cwd: folder, env: { STORE_URL: url } })
      const code = await runProgram(['db', 'verify', '--format', 'json'], context)
      return { code, stdout: stdout() }
    },
    /** Does the work of the hourly schedule. */
    async prune() {
      await (await running().course()).prunePlans()
      const texts = await byHand(address, 'SELECT hash FROM course_text')
      const plans = await byHand(address, 'SELECT version FROM course_plan')
      return { texts: texts.length, plans: plans.length }
    },
    pass: (ms: number) => {
      now += ms
    },
  }
}

describe.each(KEPT)('on %s', (kind) => {
  test('a translation that is added later reaches only those who enrol after it', async () => {
    const it = await school(kind)
    await it.enrol({ name: 'bert', language: 'de' })
    await it.write('de/1-clay.md', 'Ton')
    await it.enrol({ name: 'cleo', language: 'de' })
    expect((await it.dispatchOnce()).subjects).toEqual({ bert: 'Clay', cleo: 'Ton' })
  })

  test('lessons that are edited, renamed, deleted or translated later still reach those enrolled before as they were', async () => {
    const it = await school(kind)
    await it.enrol({ name: 'ada' }, { name: 'bert', language: 'de' })
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Clay', bert: 'Clay' })
    await it.write('2-fire.md', 'Fire, revised')
    await it.write('de/2-fire.md', 'Feuer, neu')
    await it.write('de/3-glaze.md', 'Glasur')
    await it.move('3-glaze.md', '4-glazing.md')
    await it.move('de/3-glaze.md', 'de/4-glazing.md')
    await it.remove('1-clay.md')
    await it.enrol({ name: 'cleo', language: 'de' })
    it.pass(DAY_MS)
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Fire', bert: 'Feuer', cleo: 'Feuer, neu' })
    it.pass(DAY_MS)
    // There was no German third lesson when Bert enrolled.
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Glaze', bert: 'Glaze', cleo: 'Glasur' })
  })

  test('an edited lesson of a course that is not the first goes out as it was', async () => {
    const it = await school(kind, { shut: { lessons: './shut', every: '1d', pages: false } })
    await it.write('../shut/1-kiln.md', 'Kiln')
    await it.write('../shut/2-shelf.md', 'Shelf')
    await it.enrol({ name: 'ada', course: 'shut' })
    await it.write('../shut/1-kiln.md', 'Oven')
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Kiln' })
  })

  test('with follow: latest everybody gets the newest text', async () => {
    const it = await school(kind, { firing: { lessons: './firing', every: '1d', follow: 'latest' } })
    await it.enrol({ name: 'ada' })
    await it.write('1-clay.md', 'Clay, revised')
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Clay, revised' })
  })

  test('sends the current text in place of a damaged one, and db verify names it', async () => {
    const it = await school(kind)
    await it.enrol({ name: 'ada' })
    await it.write('1-clay.md', 'Clay, revised')
    expect((await it.verify()).code).toBe(0)
    await it.change("UPDATE course_text SET source = 'no front matter' WHERE source LIKE '%subject: Clay%'")
    const verified = await it.verify()
    expect(verified.code).toBe(1)
    expect(verified.stdout).toMatch(/course firing: the lesson text [\w-]+ of version [\w-]+ was changed/)
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Clay, revised' })
    await it.change("DELETE FROM course_text WHERE source LIKE '%subject: Fire%'")
    expect((await it.verify()).stdout).toContain('is missing')
    await it.write('2-fire.md', 'Fire, revised')
    it.pass(DAY_MS)
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Fire, revised' })
  })

  test('a plan that is damaged holds up nobody: its readers go on with the course as it is', async () => {
    const it = await school(kind)
    await it.enrol({ name: 'ada' })
    await it.write('2-fire.md', 'Fire, revised')
    await it.enrol({ name: 'bert' })
    await it.change("UPDATE course_plan SET plan = '{' || plan")
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Clay', bert: 'Clay' })
    // Once it is mended, beside the running process.
    await it.changeBeside('UPDATE course_plan SET plan = substr(plan, 2)')
    it.pass(DAY_MS)
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Fire', bert: 'Fire, revised' })
  })

  test('a lesson without any text left waits until its file is back, and blocks no other', async () => {
    const it = await school(kind)
    for (const name of ['ada', 'bert', 'carl', 'dora', 'emil', 'fred']) await it.enrol({ name })
    await it.remove('1-clay.md')
    await it.change("DELETE FROM course_text WHERE source LIKE '%subject: Clay%'")
    await it.enrol({ name: 'gina' })
    const held = await it.dispatchOnce()
    expect(held.subjects).toEqual({ gina: 'Fire' })
    expect(held).toMatchObject({ sent: 1, failed: 6, waiting: 6 })
    expect(held.results.find(({ sent }) => !sent)?.reason).toBe(
      'the platform has no lesson firing-1-clay: put its file back',
    )
    await it.write('1-clay.md', 'Clay, found')
    it.pass(2 * 60 * 60 * 1000)
    expect(Object.keys((await it.dispatchOnce()).subjects)).toHaveLength(6)
  })

  test('texts and plans are deleted a day after the last reader of them has finished, and no earlier', async () => {
    const it = await school(kind)
    await it.enrol({ name: 'ada' })
    await it.write('1-clay.md', 'Clay, revised')
    await it.enrol({ name: 'bert' })
    expect(await it.prune()).toEqual({ texts: 5, plans: 2 })
    for (let day = 0; day < 2; day += 1) {
      await it.dispatchOnce()
      it.pass(DAY_MS)
      expect(await it.prune()).toEqual({ texts: 5, plans: 2 })
    }
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Glaze', bert: 'Glaze' })
    expect(await it.prune()).toEqual({ texts: 5, plans: 2 })
    // Somebody whose process still has the old files begins with the old plan, which is then not deleted.
    await it.write('1-clay.md', 'Clay')
    await it.enrol({ name: 'cleo' })
    await it.write('1-clay.md', 'Clay, revised')
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

  test('a reader who unsubscribed and undoes it days later goes on with the lessons as they were', async () => {
    const it = await school(kind)
    await it.enrol({ name: 'ada' })
    await it.dispatchOnce()
    await it.write('2-fire.md', 'Fire, revised')
    await it.change(`UPDATE subscription SET state = 'unsubscribed'`)
    for (let day = 0; day < 3; day += 1) {
      it.pass(DAY_MS)
      await it.prune()
    }
    await it.change(`UPDATE subscription SET state = 'confirmed'`)
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Fire' })
  })

  test('a plan that nobody followed when it was looked for, and somebody does a day later, is kept', async () => {
    const it = await school(kind)
    await it.enrol({ name: 'ada' })
    await it.dispatchOnce()
    await it.write('2-fire.md', 'Fire, revised')
    await it.change('UPDATE course_plan SET unused_since = 1')
    it.pass(DAY_MS)
    await it.prune()
    expect((await it.dispatchOnce()).subjects).toEqual({ ada: 'Fire' })
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
