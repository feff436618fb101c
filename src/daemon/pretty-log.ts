import pinoPretty from 'pino-pretty'

/** Fields left out, because they are the same on every line or the message says them. */
const ON_EACH = ['level', 'time', 'event', 'build', 'message']
const UNSHOWN = new Set([...ON_EACH, 'requestId', 'warning', 'fix', 'platform', 'definition', 'fingerprint'])

type Fields = Readonly<Record<string, unknown>>

/** Log lines for people. Until the services listen, lines are held back, so that the addresses come first. */
export function prettyLines({ colour }: { readonly colour: boolean }): (lines: string) => string {
  const pretty = pinoPretty.prettyFactory({
    colorize: colour,
    messageKey: 'message',
    translateTime: 'SYS:HH:MM:ss.l',
    hideObject: true,
    ignore: 'event',
    messageFormat: (line, _key, _level, { colors }) => {
      const fix = typeof line.fix === 'string' ? ` ${line.fix}` : ''
      if (line.event !== 'request') return `${line.message}${fix}${colors.gray(tail(line))}`
      const status = Number(line.status)
      const paint = status >= 500 ? colors.red : status >= 400 ? colors.yellow : colors.green
      return `${line.service} ${line.method} ${line.route} ${paint(String(status))} ${line.durationMs} ms`
    },
  })
  let held: string[] | undefined = []
  const absent: string[] = []

  const startup = (line: string, fields: Fields): string => {
    if (held === undefined) return pretty(line)
    if (fields.event === 'group_absent') absent.push(String(fields.group))
    else if (fields.event !== 'listening') held.push(pretty(line))
    if (fields.event !== 'listening' && fields.level !== 'error') return ''
    const addresses = fields.event === 'listening' ? addressLines(fields) : ''
    const rest = held.join('')
    held = undefined
    return addresses + rest + absentLine(absent)
  }
  return (lines) =>
    lines
      .split('\n')
      .map((line) => (line === '' ? '' : startup(line, JSON.parse(line) as Fields)))
      .join('')
}

function addressLines(fields: Fields): string {
  const urls = Object.entries(fields).filter(([name]) => !ON_EACH.includes(name))
  const rows = urls.map(([service, url]) => `  ${service.padEnd(8)}${String(url)}\n`)
  return `\n${rows.join('')}\n`
}

function absentLine(groups: readonly string[]): string {
  return groups.length === 0
    ? ''
    : `Not configured, all optional: ${groups.join(', ')}. Run platformctl env list for details.\n`
}

/** ` reason="no answer" graceMs=0`: what the message does not say. */
function tail(fields: Fields): string {
  return Object.entries(fields)
    .filter(([name]) => !UNSHOWN.has(name))
    .map(
      ([name, value]) =>
        ` ${name}=${/^[\w.:/-]+$/.test(String(value)) ? String(value) : JSON.stringify(value)}`,
    )
    .join('')
}
