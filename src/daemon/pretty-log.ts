import pinoPretty from 'pino-pretty'

/** Shown on the line itself, or the same on every line. */
const REQUEST_FIELDS = 'service,method,route,status,durationMs'

/** Log lines written for reading: a request takes one line, as access logs do; fields of anything else follow it. */
export function prettyLines({ colour }: { readonly colour: boolean }): (lines: string) => string {
  const common = {
    colorize: colour,
    messageKey: 'message',
    translateTime: 'SYS:HH:MM:ss.l',
    singleLine: true,
  } as const
  const request = pinoPretty.prettyFactory({
    ...common,
    ignore: `event,build,message,requestId,${REQUEST_FIELDS}`,
    messageFormat: (line, _key, _level, { colors }) => {
      const status = Number(line.status)
      const paint = status >= 500 ? colors.red : status >= 400 ? colors.yellow : colors.green
      return `${line.service} ${line.method} ${line.route} ${paint(String(status))} ${line.durationMs} ms`
    },
  })
  const other = pinoPretty.prettyFactory({ ...common, ignore: 'event,build' })
  return (lines) =>
    lines
      .split('\n')
      .map((line) => (line === '' ? '' : (line.includes('"event":"request"') ? request : other)(line)))
      .join('')
}
