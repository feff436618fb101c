type Style = (text: string) => string

/** The styles that the CLI uses. A state is never shown by colour alone, so plain text says the same. */
export interface Paint {
  readonly bold: Style
  readonly dim: Style
  readonly red: Style
  readonly green: Style
  readonly yellow: Style
  readonly cyan: Style
}

const same: Style = (text) => text
const PLAIN: Paint = { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same }

/** Chalk when there is colour to write; without it chalk is not even loaded, which is a third of a cold preflight. */
export async function loadPaint(colour: boolean): Promise<Paint> {
  if (!colour) return PLAIN
  const { Chalk } = await import('chalk')
  return new Chalk({ level: 1 })
}
