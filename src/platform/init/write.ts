import { messagesOf } from '../../core/messages/messages.ts'
import type { DefinitionSketch } from './sketch.ts'

/** The parts of a new definition besides its groups. */
export interface Beginning {
  readonly name: string
  /** Name of its one course; none when left out. */
  readonly course?: string | undefined
  /** A language tag; English when left out. */
  readonly language?: string | undefined
}

export function definitionText(sketch: DefinitionSketch, { name, course, language }: Beginning): string {
  const groups = sketch.groups.map(groupText)
  const brand = language === undefined ? '' : `\n  brand: { language: ${literal(language)} },`
  const courses =
    course === undefined
      ? ''
      : `\n  courses: { ${key(course)}: { lessons: ${literal(lessonsFolder(course))}, every: '1d' } },`
  return `import { definePlatform } from 'platformctl/config'

export default definePlatform({
  preset: 'base',
  // without: ['payments', 'datastore', 'identity', 'analytics'], // then visitors do not read that these are off
  name: ${literal(name)},${brand}
  services: { web: {} },${courses}
${groups.length === 0 ? EXAMPLE : `  groups: {\n${groups.join('\n')}\n  },`}
})
`
}

/** Where the lessons of a new course are, from the definition's folder. */
export const lessonsFolder = (course: string) => `./courses/${course}`

/** The first lesson of a new course: its path from the definition's folder, and its text. */
export function firstLesson(course: string, language = 'en') {
  const { language: spoken, firstLesson } = messagesOf(language)
  const inLanguage = language.toLowerCase().split('-')[0] === spoken
  const comment = inLanguage ? '' : `# platformctl does not speak ${language}: translate this lesson.\n`
  return {
    file: `${lessonsFolder(course)}/1-welcome.md`,
    text: `---\n${comment}subject: ${firstLesson.subject}\n---\n\n${firstLesson.body}\n`,
    /** Whether it is in the language asked for; if not, it is in English. */
    inLanguage,
  }
}

const EXAMPLE = `  // groups: {
  //   bookings: {
  //     unlocks: 'the booking calendar',
  //     absent: 'the calendar is hidden',
  //     variables: { BOOKINGS_URL: { kind: 'url' }, BOOKINGS_TOKEN: { kind: 'secret' } },
  //     rules: [{ allOrNone: ['BOOKINGS_URL', 'BOOKINGS_TOKEN'] }],
  //   },
  // },`

function groupText({ name, variables, pairs, guesses }: DefinitionSketch['groups'][number]): string {
  const rows = variables.map(({ name: variable, variable: of }) => {
    const fields = Object.entries(of).map(([field, value]) => `${field}: ${literal(value)}`)
    return `        ${key(variable)}: { ${fields.join(', ')} },`
  })
  const guessed = guesses.map((pair) => `        // { allOrNone: ${literal(pair)} },`)
  if (guessed.length > 0)
    guessed.unshift('        // Guessed from the names. Uncomment what works only together:')
  const rules = [...pairs.map((pair) => `        { allOrNone: ${literal(pair)} },`), ...guessed]
  return `    ${key(name)}: {
      unlocks: ${literal(name)},
      absent: ${literal(`${name} is off`)},
      variables: {
${rows.join('\n')}
      },${rules.length === 0 ? '' : `\n      rules: [\n${rules.join('\n')}\n      ],`}
    },`
}

const key = (name: string) => (/^[A-Za-z]\w*$/.test(name) ? name : literal(name))

function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'string') return JSON.stringify(value)
  return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}
