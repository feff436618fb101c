/** The file that surrounds every mail of a folder. */
export const LAYOUT = 'layout.mjml'

/** A template that cannot be compiled: one sentence, with file and line. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
  readonly file: string
  readonly line: number
  readonly sentence: string
  /** Folder of the file, if it is known where the fault is found. */
  readonly folder: string | undefined

  constructor(file: string, line: number, sentence: string, folder?: string) {
    super(`${file}:${line}: ${sentence}`)
    this.file = file
    this.line = line
    this.sentence = sentence
    this.folder = folder
  }
}
