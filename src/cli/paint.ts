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

const styled =
  (open: number, close: number): Style =>
  (text) =>
    ours(`\u001b[${open}m`) + text + ours(`\u001b[${close}m`)

/** Colours when there are any to write (SGR of ECMA-48), else the text as it is. */
export async function loadPaint(colour: boolean): Promise<Paint> {
  if (!colour) return PLAIN
  return {
    bold: styled(1, 22),
    dim: styled(2, 22),
    red: styled(31, 39),
    green: styled(32, 39),
    yellow: styled(33, 39),
    cyan: styled(36, 39),
  }
}
