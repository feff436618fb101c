/** How far a long command is: one line that is written over on a terminal; elsewhere a line of its own now and then. */
export interface Progress {
  readonly tell: (text: string) => void
  /** Takes the line off the terminal, so that what follows begins at its own. */
  readonly end: () => void
}

export function progressOn({
  stream = process.stderr,
  everyMs = 15_000,
  now = () => performance.now(),
}: {
  readonly stream?: { readonly isTTY?: boolean; write(text: string): unknown }
  /** The least between two lines where there is no terminal. */
  readonly everyMs?: number
  readonly now?: () => number
} = {}): Progress {
  const terminal = stream.isTTY === true
  const between = terminal ? 100 : everyMs
  let last = Number.NEGATIVE_INFINITY
  return {
    tell(text) {
      if (now() - last < between) return
      last = now()
      stream.write(terminal ? `\r\x1b[K${text}` : `${text}\n`)
    },
    end() {
      if (terminal && last !== Number.NEGATIVE_INFINITY) stream.write('\r\x1b[K')
    },
  }
}
