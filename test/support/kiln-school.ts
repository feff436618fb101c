import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { openWorkshop } from '../../src/cli/preview/workshop.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'

const LESSONS = { '1-clay': 'Wedging the clay', '2-wheel': 'Centering', '3-glaze': 'Glazing' }
const GERMAN = { '1-clay': 'Den Ton schlagen', '2-wheel': 'Zentrieren' }
const ARABIC = { '1-clay': 'عجن الطين' }

const lesson = (subject: string) =>
  `---\nsubject: ${subject}\npreheader: About ${subject}\n---\n\n# ${subject}\n\nBegin with a stoneware body.\n`

/** A platform in English, with a course whose translations into German and Arabic lack something, and one of `days`. */
export async function kilnSchool(folder: string, { days = 365 } = {}) {
  const write = async (file: string, text: string) => {
    await mkdir(path.dirname(path.join(folder, file)), { recursive: true })
    await writeFile(path.join(folder, file), text)
  }
  for (const [language, subjects] of Object.entries({ '.': LESSONS, de: GERMAN, ar: ARABIC }))
    for (const [name, subject] of Object.entries(subjects))
      await write(path.join('firing', language, `${name}.md`), lesson(subject))
  for (let n = 1; n <= days; n += 1) await write(`year/${n}-day.md`, lesson(`Day ${n}`))
  const platform = resolvePlatform(
    {
      preset: 'base',
      name: 'Kiln School',
      courses: {
        firing: { title: 'First firing', lessons: './firing', at: '02:30', zone: 'subscriber' },
        year: { title: 'A year of clay', lessons: './year', at: '09:00', zone: 'Europe/Berlin' },
      },
    },
    { folder },
  )
  return { write, lesson, platform, workshop: openWorkshop(platform.mails) }
}
