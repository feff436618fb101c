export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Only these value types: a log line is built from allow-listed fields, never from whole objects. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

/**
 * The log port. `event` is a stable snake_case name that runbooks and alerts match on (`course_day_sent`);
 * `message` is the sentence for a person. No field carries a secret, a token or an address.
 */
export interface Log {
  debug(event: string, message: string, fields?: LogFields): void
  info(event: string, message: string, fields?: LogFields): void
  warn(event: string, message: string, fields?: LogFields): void
  error(event: string, message: string, fields?: LogFields): void
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
