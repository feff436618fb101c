import type { Context } from './context.ts'
import { inertJson, ours } from './terminal.ts'

/** Where log lines go: as they are, or written for people when standard output is a terminal. */
export async function logOutput({ stdout, colour }: Context): Promise<(lines: string) => void> {
  if (!stdout.isTTY) return (lines) => void stdout.write(lines)
  const { prettyLines } = await import('../daemon/pretty-log.ts')
  const pretty = prettyLines({ colour: colour.stdout })
  // The texts first: what is an escape sequence afterwards is the colour of the line.
  return (lines) => void stdout.write(ours(pretty(inertJson(lines))))
}
