import { durationText } from '../../core/durations.ts'
import type { RemoteHealth } from '../../core/health/prober.ts'
import { becauseOf, type RemoteState, reasonOf, stateOf, type Verdict } from '../../core/health/verdict.ts'
import { type Context, isLive, loadPaint, ours, type Paint, terminalColumns } from '../context.ts'
import { healthText, LOOK, nameCell, shownState } from '../output/health.ts'
import { BARS, iso } from '../output/text.ts'

export interface StateHistory {
  readonly state: RemoteState
  /** When it came into this state, in UTC milliseconds; at first, when the watch began. */
  readonly since: number
  /** Oldest first; `ms` is undefined where there was no answer. */
  readonly points: readonly { readonly ms: number | undefined; readonly state: RemoteState }[]
}

const MOST_POINTS = 40

export function follow(tracks: ReadonlyMap<string, StateHistory>, { results }: Verdict, now: number) {
  return new Map(
    results.map((health) => {
      const before = tracks.get(health.service)
      const state = stateOf(health)
      const point = { ms: health.reached ? health.phases.total : undefined, state }
      const since = before?.state === state ? before.since : now
      const points = [...(before?.points ?? []), point].slice(-MOST_POINTS)
      return [health.service, { state, since, points }]
    }),
  )
}

/** One round: every service asked at once, each for at most `timeoutMs`. */
export type Ask = (timeoutMs: number) => Promise<Verdict>

export interface FrameInput {
  readonly verdict: Verdict | undefined
  readonly tracks: ReadonlyMap<string, StateHistory>
  readonly now: number
  /** Undefined while a check runs. */
  readonly nextInMs: number | undefined
  readonly intervalMs: number
  readonly columns: number
  readonly rows: number
  readonly paint: Paint
}

type Span = readonly [text: string, style?: keyof Paint]
type Line = readonly Span[]

/** The live view as lines that fit the terminal: no line wraps, none is too many. */
export function frame(input: FrameInput): readonly string[] {
  const { verdict, rows, columns, paint } = input
  const lines: Line[] = [header(input), []]
  if (verdict === undefined) lines.push([['asking …', 'dim']])
  else {
    const [sign, style] = verdict.outcome === 'passed' ? (['✔', 'green'] as const) : (['✖', 'red'] as const)
    for (const health of verdict.results) lines.push(...serviceLines(health, verdict, input))
    lines.push([], ...rootLines(verdict), [[`${sign} ${verdict.sentence}`, style]])
  }
  return lines.slice(0, Math.max(1, rows - 1)).map((line) => painted(line, columns, paint))
}

function header({ now, nextInMs, intervalMs }: FrameInput): Line {
  const next = nextInMs === undefined ? 'checking now' : `next check in ${Math.ceil(nextInMs / 1000)} s`
  const time = new Date(now).toISOString().slice(11, 19)
  const said = `  ${time} UTC · every ${durationText(intervalMs)} · ${next} · Ctrl-C ends`
  return [
    ['platformctl health', 'bold'],
    [said, 'dim'],
  ]
}

const WORDS = 86

function serviceLines(health: RemoteHealth, verdict: Verdict, input: FrameInput): Line[] {
  const state = shownState(health)
  const track = input.tracks.get(health.service)
  const because = becauseOf(verdict.diagnosis, health.service)
  const width = Math.min(40, Math.max(8, input.columns - WORDS))
  const lasted = input.now - (track?.since ?? input.now)
  const head: Line = [
    [`${LOOK[state][0]} ${nameCell(health, verdict)}${state.padEnd(11)}`, LOOK[state][1]],
    [`${health.phases.total.toFixed(1).padStart(8)} ms  `],
    ...sparkline(track, width),
    [`  ${lasted < 1000 ? 'just now' : `for ${durationText(lasted)}`}`.padEnd(15)],
    ...(because === undefined ? [] : ([[`${because}  `, 'bold']] as const)),
    [health.reached ? `build ${health.report.build ?? 'unstamped'}` : health.cause, 'dim'],
  ]
  if (!health.reached) return [head]
  const { report } = health
  const bad = Object.entries(report.probes).flatMap(([name, probe]): Line[] => {
    const { state } = probe
    // Leave out what a service reports about its dependencies: it is already shown under them.
    const isTold = because !== undefined && state === report.state
    if (state === 'ok' || state === 'skipped' || isTold) return []
    const [sign, style] = LOOK[state]
    return [
      [
        [`    ${sign} ${name} `, style],
        [reasonOf(verdict.diagnosis, probe), 'dim'],
      ],
    ]
  })
  return [head, ...bad]
}

function rootLines({ diagnosis }: Verdict): Line[] {
  return diagnosis.rootCauses.map(({ services, probe, reason }) => [
    ['root cause  ', 'dim'],
    [`${services.join(', ')}${probe === undefined ? '' : `: ${probe}`}`, 'bold'],
    [`: ${reason}`],
  ])
}

/** The last latencies against the longest of them; × where there was no answer. */
function sparkline(track: StateHistory | undefined, width: number): Span[] {
  const shown = track?.points.slice(-width) ?? []
  const longest = Math.max(...shown.map(({ ms }) => ms ?? 0), 0.1)
  const barOf = (ms: number) => BARS.charAt(Math.min(7, Math.floor((ms / longest) * 8)))
  const marks = shown.map(({ ms, state }): Span => [ms === undefined ? '×' : barOf(ms), LOOK[state][1]])
  return [...marks, [' '.repeat(width - shown.length)]]
}

function painted(line: Line, columns: number, paint: Paint): string {
  let left = columns
  let text = ''
  for (const [words, style] of line) {
    const cut = [...words].slice(0, left).join('')
    left -= [...cut].length
    text += style === undefined ? cut : paint[style](cut)
  }
  return text
}

export interface WatchOptions {
  readonly timeout: number
  readonly interval: number | undefined
  readonly format: 'text' | 'json' | 'junit' | 'prom'
}

const INTERVAL_MS = 5000
const REDRAW_MS = 1000

/** `fresh`: a round has just ended; otherwise only time has passed. */
type Shown = Pick<FrameInput, 'verdict' | 'tracks' | 'nextInMs'> & { readonly fresh: boolean }

/** Checks the services repeatedly until interrupted, and gives the last complete round. */
export async function watch(context: Context, ask: Ask, options: WatchOptions): Promise<Verdict | undefined> {
  const { clock, signal } = context
  const intervalMs = options.interval ?? INTERVAL_MS
  const live = options.format === 'text' && isLive(context, context.stdout)
  const paint = await loadPaint(context.colour.stdout)
  const view = live ? liveView(context, intervalMs, paint) : await linesView(context, options)
  // At once and not when the loop comes round: a second Ctrl-C ends the process on the spot.
  signal.addEventListener('abort', view.close, { once: true })
  let verdict: Verdict | undefined
  let tracks: ReadonlyMap<string, StateHistory> = new Map()
  try {
    while (!signal.aborted) {
      const began = clock.monotonic()
      const redraw = () => view.show({ verdict, tracks, nextInMs: undefined, fresh: false })
      const latest = live ? await meanwhile(ask(options.timeout), redraw, clock) : await ask(options.timeout)
      if (signal.aborted) break
      verdict = latest
      tracks = follow(tracks, latest, clock.now())
      for (let fresh = true; !signal.aborted; fresh = false) {
        const nextInMs = Math.max(0, began + intervalMs - clock.monotonic())
        view.show({ verdict, tracks, nextInMs, fresh })
        if (nextInMs === 0) break
        await clock.sleep(live ? Math.min(REDRAW_MS, nextInMs) : nextInMs, signal).catch(() => {})
      }
    }
  } finally {
    signal.removeEventListener('abort', view.close)
    view.close()
  }
  if (live && verdict) {
    const columns = terminalColumns(context.stdout)
    context.stdout.write(healthText(verdict, verdict.outcome === 'passed', paint, columns))
  }
  return verdict
}

/** Waits for what runs, and does something every second until it is there. */
async function meanwhile<T>(running: Promise<T>, each: () => void, clock: Context['clock']): Promise<T> {
  const ended = new AbortController()
  const done = running.finally(() => ended.abort())
  while (!ended.signal.aborted) {
    each()
    await Promise.race([done, clock.sleep(REDRAW_MS, ended.signal).catch(() => {})])
  }
  return running
}

// DEC private modes: 1049 the alternate screen, 25 the cursor, 2026 synchronised output (ignored where unknown).
const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const BEGIN = '\u001b[?2026h\u001b[H'
const END = '\u001b[J\u001b[?2026l'
const END_OF_LINE = '\u001b[K\r\n'

function liveView({ stdout, clock }: Context, intervalMs: number, paint: Paint) {
  let open = true
  stdout.write(ours(ENTER))
  return {
    show({ verdict, tracks, nextInMs }: Shown) {
      if (!open) return
      // 0 by 0 is what a terminal says that does not know its size.
      const columns = terminalColumns(stdout)
      const rows = stdout.rows || 24
      const lines = frame({ verdict, tracks, now: clock.now(), nextInMs, intervalMs, columns, rows, paint })
      const end = ours(END_OF_LINE)
      stdout.write(`${ours(BEGIN)}${lines.join(end)}${end}${ours(END)}`)
    },
    /** Puts the terminal back; may be called twice. */
    close() {
      if (open) stdout.write(ours(LEAVE))
      open = false
    },
  }
}

async function linesView({ stdout, clock }: Context, { format }: WatchOptions) {
  const { healthJson } = await import('../output/health.ts')
  const said = new Map<string, string>()
  return {
    show({ verdict, fresh }: Shown) {
      if (verdict === undefined || !fresh) return
      const now = clock.now()
      if (format === 'json')
        stdout.write(`${JSON.stringify(healthJson(verdict, verdict.outcome === 'passed', now))}\n`)
      else
        for (const [service, words] of changes(verdict)) {
          if (said.get(service) !== words) stdout.write(`${iso(now)} ${service} ${words}\n`)
          said.set(service, words)
        }
    },
    close() {},
  }
}

/** The part of each service's line that is worth printing again when it changes. */
function changes({ results, diagnosis }: Verdict): (readonly [string, string])[] {
  return results.map((health) => {
    const because = becauseOf(diagnosis, health.service)
    const own = diagnosis.rootCauses
      .filter(({ services }) => services.includes(health.service))
      .map(({ probe, reason }) => (probe === undefined ? reason : `${probe}: ${reason}`))
    const why = because === undefined ? own : [because, ...own]
    const build = health.reached ? ` build ${health.report.build ?? 'unstamped'}` : ''
    return [health.service, `${shownState(health)}${build}${why.length === 0 ? '' : ` (${why.join('; ')})`}`]
  })
}
