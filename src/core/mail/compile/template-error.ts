/** The file that surrounds every mail of a folder. */
export const LAYOUT = 'layout.mjml'

/** A template that cannot be compiled: one sentence, with file and line. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
  readonly file: string
  readonly line: number
  readonly sentence: string

  constructor(file: string, line: number, sentence: string) {
    super(`${file}:${line}: ${sentence}`)
    this.file = file
    this.line = line
    this.sentence = sentence
  }
}
