import type { LiveResult, LiveState } from '../../core/live/live.ts'
import type { Paint } from '../paint.ts'
import { wrap } from './wrap.ts'

const SIGN: Readonly<Record<LiveState, string>> = { passed: '✔', warning: '▲', failed: '✖', skipped: '○' }

/**
 * Live checks for a person: a block a target, a line a check; what was skipped says so in words. Targets that are not
 * checked at all share a line for each reason.
 */
export function liveText(results: readonly LiveResult[], paint: Paint, columns: number): string {
  const colour = { passed: paint.green, warning: paint.yellow, failed: paint.red, skipped: paint.dim }
  const tried = results.filter(({ check }) => check !== 'configuration')
  const widthOf = (texts: readonly string[]) => Math.max(0, ...texts.map((text) => text.length)) + 2
  const targets = widthOf(results.map(({ target }) => target))
  const checks = widthOf(tried.map(({ check }) => check))
  const line = (target: string, state: LiveState, check: string, text: string, shade = colour[state]) => {
    const indent = targets + 2 + check.length
    const [first = '', ...rest] = wrap(text, Math.max(24, columns - indent))
    return [
      `${target.padEnd(targets)}${colour[state](SIGN[state])} ${check}${shade(first)}`,
      ...rest.map((more) => ' '.repeat(indent) + shade(more)),
    ]
  }
  const lines = tried.flatMap(({ target, check, state, detail, latencyMs }, index) =>
    line(
      tried[index - 1]?.target === target ? '' : target,
      state,
      check.padEnd(checks),
      state === 'skipped' ? `skipped: ${detail}` : `${detail}${took(latencyMs)}`,
      state === 'passed' ? paint.dim : undefined,
    ),
  )
  const reasons = Map.groupBy(
    results.filter(({ check }) => check === 'configuration'),
    ({ detail }) => detail,
  )
  for (const [reason, skipped] of reasons) {
    const [first = '', ...rest] = wrap(
      `skipped (${reason}): ${skipped.map(({ target }) => target).join(', ')}`,
      columns - 2,
    )
    lines.push(paint.dim(`${SIGN.skipped} ${first}`), ...rest.map((more) => paint.dim(`  ${more}`)))
  }
  return `${paint.bold('Live checks')}  ${liveCounts(results)}\n\n${lines.join('\n')}`
}

/** Below a millisecond nothing was waited for. */
function took(latencyMs = 0): string {
  return latencyMs < 1 ? '' : `, ${Math.round(latencyMs)} ms`
}

/** `12 passed, 1 failed, 4 skipped`: states that did not occur are left out, but never that nothing passed. */
export function liveCounts(results: readonly LiveResult[]): string {
  const count = (state: LiveState) => results.filter((result) => result.state === state).length
  const parts = [`${count('passed')} passed`]
  for (const [state, word] of [
    ['warning', 'doubtful'],
    ['failed', 'failed'],
    ['skipped', 'skipped'],
  ] as const)
    if (count(state) > 0) parts.push(`${count(state)} ${word}`)
  return parts.join(', ')
}
