import { becauseOf } from '../../core/health/diagnosis.ts'
import type { ProbeResult } from '../../core/health/probe.ts'
import type { RemoteHealth } from '../../core/health/prober.ts'
import type { Verdict } from '../../core/health/verdict.ts'
import { SIGN, STYLE, shownState } from '../output/health-text.ts'
import type { Paint } from '../paint.ts'
import type { StateHistory } from './track.ts'

export interface FrameInput {
  readonly verdict: Verdict | undefined
  readonly tracks: ReadonlyMap<string, StateHistory>
  /** UTC milliseconds. */
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
    for (const health of verdict.results) lines.push(...serviceLines(health, verdict, input))
    lines.push([], ...rootLines(verdict), [
      [
        `${verdict.outcome === 'passed' ? '✔' : '✖'} ${verdict.sentence}`,
        verdict.outcome === 'passed' ? 'green' : 'red',
      ],
    ])
  }
  return lines.slice(0, Math.max(1, rows - 1)).map((line) => painted(line, columns, paint))
}

function header({ now, nextInMs, intervalMs }: FrameInput): Line {
  const next = nextInMs === undefined ? 'checking now' : `next check in ${Math.ceil(nextInMs / 1000)} s`
  return [
    ['platformctl health', 'bold'],
    [
      `  ${new Date(now).toISOString().slice(11, 19)} UTC · every ${span(intervalMs)} · ${next} · Ctrl-C ends`,
      'dim',
    ],
  ]
}

/** Room that the words beside a sparkline need. */
const WORDS = 86

function serviceLines(health: RemoteHealth, { diagnosis }: Verdict, input: FrameInput): Line[] {
  const state = shownState(health)
  const track = input.tracks.get(health.service)
  const because = becauseOf(diagnosis, health.service)
  const width = Math.min(40, Math.max(8, input.columns - WORDS))
  const head: Line = [
    [`${SIGN[state]} ${health.service.padEnd(6)}${state.padEnd(11)}`, STYLE[state]],
    [`${health.phases.total.toFixed(1).padStart(8)} ms  `],
    ...sparkline(track, width),
    [`  ${lasting(input.now - (track?.since ?? input.now))}`.padEnd(15)],
    ...(because === undefined ? [] : ([[`${because}  `, 'bold']] as const)),
    [health.reached ? `build ${health.report.build ?? 'unstamped'}` : health.cause, 'dim'],
  ]
  if (!health.reached) return [head]
  const { report } = health
  // Leave out what a service reports about its dependencies: it is already shown under them.
  const told = ({ state: one }: ProbeResult) => because !== undefined && one === report.state
  const bad = Object.entries(report.probes).filter(
    ([, probe]) => probe.state !== 'ok' && probe.state !== 'skipped' && !told(probe),
  )
  return [
    head,
    ...bad.map(
      ([name, probe]): Line => [
        [`    ${SIGN[probe.state]} ${name} `, STYLE[probe.state]],
        [probe.reason ?? probe.state, 'dim'],
      ],
    ),
  ]
}

function rootLines({ diagnosis }: Verdict): Line[] {
  return diagnosis.rootCauses.map(({ services, probe, reason }) => [
    ['root cause  ', 'dim'],
    [`${services.join(', ')}${probe === undefined ? '' : `: ${probe}`}`, 'bold'],
    [`: ${reason}`],
  ])
}

const BARS = '▁▂▃▄▅▆▇█'

/** The last latencies against the longest of them; × where there was no answer. */
function sparkline(track: StateHistory | undefined, width: number): Span[] {
  const shown = track?.points.slice(-width) ?? []
  const longest = Math.max(...shown.map(({ ms }) => ms ?? 0), 0.1)
  const marks = shown.map(
    ({ ms, state }): Span => [
      ms === undefined ? '×' : (BARS[Math.min(7, Math.floor((ms / longest) * 8))] ?? '█'),
      STYLE[state],
    ],
  )
  return [...marks, [' '.repeat(width - shown.length)]]
}

function lasting(ms: number): string {
  return ms < 1000 ? 'just now' : `for ${span(ms)}`
}

/** `850 ms`, `12 s`, `4 m 12 s`, `3 h 5 m`, `2 d 4 h`. */
function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  const seconds = Math.floor(ms / 1000)
  const [minutes, hours, days] = [
    Math.floor(seconds / 60),
    Math.floor(seconds / 3600),
    Math.floor(seconds / 86_400),
  ]
  if (minutes === 0) return `${seconds} s`
  const two = (whole: number, unit: string, rest: number, part: string) =>
    rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${part}`
  if (hours === 0) return two(minutes, 'm', seconds % 60, 's')
  return days === 0 ? two(hours, 'h', minutes % 60, 'm') : two(days, 'd', hours % 24, 'h')
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
