import { readTemplateFiles, type TemplateFiles, type Templates } from './compile/files.ts'
import { hashOf, type LessonText, type LessonTexts } from './definition.ts'

/** Reads the lessons of a set. Rejects with a TemplateError if a file is missing or cannot be read. */
export async function readLessonTexts(set: Templates): Promise<LessonTexts> {
  const lessons = new Map<string, Record<string, { text: LessonText; files: TemplateFiles }>>()
  // The lessons of a course share a layout: keep it once.
  const layouts = new Map<string, string>()
  await Promise.all(
    set.definitions.map(async (definition) => {
      if (!definition.lesson) return
      const read = await readTemplateFiles(set, definition)
      const layout = layouts.get(read.layout) ?? read.layout
      layouts.set(layout, layout)
      const { name, translates } = definition
      const key = translates === undefined ? '' : name.slice(0, -(translates.length + 1))
      const lesson = lessons.get(translates ?? name) ?? {}
      lessons.set(translates ?? name, lesson)
      lesson[key] = { text: textOf(read), files: { ...read, layout } }
    }),
  )
  return {
    of(lesson) {
      const found = lessons.get(lesson)
      return found && Object.fromEntries(Object.entries(found).map(([key, { text }]) => [key, text]))
    },
    async compile({ format, language, source }, like) {
      const lesson = lessons.get(like)
      const files = lesson?.[language.toLowerCase()]?.files ?? lesson?.['']?.files
      if (files === undefined) throw new RangeError(`there is no lesson ${like}`)
      const { compileFile } = await import('./compile/compile.ts')
      return compileFile({ ...files, file: `lesson.${format}`, source, language })
    },
  }
}

function textOf({ file, source: read, language = 'en' }: TemplateFiles): LessonText {
  const format = file.endsWith('.mjml') ? 'mjml' : 'md'
  // PostgreSQL keeps no NUL, and Markdown reads it as this.
  const source = read.replaceAll('\0', '\ufffd')
  return { hash: hashOf({ format, language, source }), format, language, source }
}
