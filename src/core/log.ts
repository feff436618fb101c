export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Only these value types: a log line is built from allow-listed fields, never from whole objects. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

/** Runbooks and alerts match on `event` (`course_day_sent`). No field carries a secret, a token or an address. */
export type Log = Readonly<Record<LogLevel, (event: string, message: string, fields?: LogFields) => void>>

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
