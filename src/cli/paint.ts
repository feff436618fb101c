import { ours } from './terminal.ts'

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

/** Colours when there are any to write, else the text as it is. */
export async function loadPaint(colour: boolean): Promise<Paint> {
  if (!colour) return PLAIN
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level: 1 })
  return {
    bold: guarded(chalk.bold),
    dim: guarded(chalk.dim),
    red: guarded(chalk.red),
    green: guarded(chalk.green),
    yellow: guarded(chalk.yellow),
    cyan: guarded(chalk.cyan),
  }
}

/** A style whose own sequences pass the guard of the output; a sequence in the text does not become one of ours. */
function guarded(style: Style): Style {
  const [open = '', close = ''] = style('|').split('|').map(ours)
  return (text) => open + text + close
}
