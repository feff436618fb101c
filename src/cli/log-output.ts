import type { Context } from './context.ts'

/** Where log lines go: as they are, or written for people when standard output is a terminal. */
export async function logOutput({ stdout, colour }: Context): Promise<(lines: string) => void> {
  if (!stdout.isTTY) return (lines) => void stdout.write(lines)
  const { prettyLines } = await import('../daemon/pretty-log.ts')
  const pretty = prettyLines({ colour: colour.stdout })
  return (lines) => void stdout.write(pretty(lines))
}
