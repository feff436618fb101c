import type { HealthReport, ProbeState } from '../../core/health/probe.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import { type Page, page } from './layout.ts'

const SIGN: Readonly<Record<ProbeState, string>> = {
  ok: '● ok',
  degraded: '◐ degraded',
  failing: '✖ failing',
  skipped: '○ off',
}
const VERDICT = {
  ok: 'Everything works',
  degraded: 'Working, with limits',
  failing: 'Something is broken',
} as const

/** The start page: what works, what is not configured, and what that means. */
export function statusPage(report: HealthReport, meaning: (probe: string) => string | undefined): Page {
  const rows = Object.entries(report.probes).map(
    ([name, probe]) =>
      `<tr><th scope="row">${escapeHtml(name)}</th><td class="state ${probe.state}">${SIGN[probe.state]}</td><td>${escapeHtml(probe.state === 'skipped' ? `not configured: ${meaning(name) ?? 'nothing depends on it'}` : (probe.reason ?? 'configured'))}</td></tr>`,
  )
  return page({
    title: `${VERDICT[report.state]} · status`,
    wide: true,
    body: `<h1><span class="${report.state}">${SIGN[report.state].slice(0, 1)}</span> ${VERDICT[report.state]}</h1>
<p class="quiet">Looked at ${escapeHtml(report.time.replace('T', ' ').slice(0, 19))} UTC · build ${escapeHtml(report.build ?? 'unstamped')} · running since ${escapeHtml(report.startedAt.replace('T', ' ').slice(0, 16))} UTC</p>
<table>${rows.join('\n')}</table>
<h2>The course</h2>
<p>Seven short lessons on quantum computing, one a day by mail. They can be read here too: <a href="/lessons/1">start with day 1</a>.</p>`,
  })
}
