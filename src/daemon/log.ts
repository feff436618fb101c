import { pino } from 'pino'
import type { Log, LogLevel } from '../core/log.ts'

/** JSON lines with `time` (ISO 8601), `level`, `event`, `message` and the fields given; `build` on each. */
export function createLog({
  write,
  level,
  build,
}: {
  readonly write: (line: string) => void
  readonly level: LogLevel
  readonly build: string | undefined
}): Log {
  const logger = pino(
    {
      level,
      base: build === undefined ? null : { build },
      messageKey: 'message',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  )
  const at =
    (name: LogLevel): Log[LogLevel] =>
    (event, message, fields = {}) =>
      logger[name]({ event, ...fields }, message)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
