import { pino } from 'pino'
import type { Log, LogLevel } from '../core/host.ts'

const ALWAYS: ReadonlySet<string> = new Set(['platform', 'listening'])

/**
 * JSON lines with `time` (ISO 8601), `level`, `event`, `message` and the fields given; `build` on each. The lines of
 * one turn of the event loop are written together, because each write costs more than a line; an error goes out at once.
 */
export function createLog(options: {
  readonly write: (lines: string) => void
  readonly level: LogLevel
  readonly build: string | undefined
}) {
  const { write, level, build } = options
  let held = ''
  /** Writes what is still held back; call it before the process ends. */
  const flush = () => {
    if (held === '') return
    const lines = held
    held = ''
    write(lines)
  }
  const hold = (line: string) => {
    if (held === '') setImmediate(flush)
    held += line
  }
  const logger = pino(
    {
      level,
      base: build === undefined ? null : { build },
      messageKey: 'message',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: hold },
  )
  // No level hides which platform runs, or the line from which programs read the ports that were taken.
  const always = logger.child({}, { level: 'info' })
  const at =
    (name: LogLevel): Log[LogLevel] =>
    (event, message, fields = {}) => {
      const one = ALWAYS.has(event) ? always : logger
      // Check the level first, before building the fields: there can be ten thousand polls a second.
      if (!one.isLevelEnabled(name)) return
      one[name]({ event, ...fields }, message)
      if (name === 'error') flush()
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), flush }
}
