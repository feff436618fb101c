import { isLanguage } from '../../core/course/definition.ts'
import { HOUR_MS, MINUTE_MS } from '../../core/durations.ts'
import type { Notice } from '../../core/incidents/incident.ts'
import { LINT_RULES } from '../../core/mail/lint/rules.ts'
import { escapeHtml } from '../../core/mail/template.ts'
import { directionOf } from '../../core/messages/messages.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { WEB } from '../../core/service.ts'
import { mailsPage } from '../pages/mails.ts'
import { pageOf } from '../pages/site.ts'
import { PREVIEW_SCRIPT } from './script.ts'

export interface School extends Pick<ResolvedPlatform, 'courses' | 'language'> {
  /** Where the reader is. */
  readonly zone: string
  readonly now: () => number
  /** Values for the mail about incidents, by what it tells, in a language. */
  readonly notices?: ReturnType<typeof noticeSamples>
}

const SAMPLE_AT = Date.UTC(2026, 10, 22, 9, 14)

/** What the mail about incidents says when one begins, when it ends, and of an announcement: as the daemon writes it. */
export function noticeSamples(platform: ResolvedPlatform) {
  const cause = platform.probes[0]?.name ?? WEB
  const begins = SAMPLE_AT
  const ends = SAMPLE_AT + 47 * MINUTE_MS
  const announced = { text: 'Maintenance: no sign-in for ten minutes', from: ends, until: ends + HOUR_MS }
  return async (language: string) => {
    const { noticeSlots } = await import('../../daemon/open/course.ts')
    const slots = (kind: Notice['kind'], facts: Notice['facts']) => {
      const notice = { subject: 'sample', kind, at: begins, facts }
      return noticeSlots(platform, 'https://www.example.com', notice, language)
    }
    return {
      'Is failing': slots('opened', { cause, from: begins }),
      'Works again': slots('closed', { cause, from: begins, until: ends }),
      Announced: slots('announced', announced),
    }
  }
}

export const mailsPreview = (): Response =>
  mailsPage({
    title: 'Mails · platformctl preview',
    heading: 'Mails',
    nav: pageLinks('mails'),
    gallery: true,
    views: { findings: 'Findings', clients: 'Clients' },
    tools:
      '<button id="send" aria-expanded="false" aria-controls="sender">Send to me</button> <span id="said" role="status"></span>',
    below:
      '<form id="sender" hidden><label for="to">Address</label> <select id="to"></select> <button>Send</button></form>',
    side: '<details id="slots" open><summary>Sample values</summary><form></form></details>',
    empty: 'There is no mail.',
    script: PREVIEW_SCRIPT,
  })

/** The section of the reference on each finding of `email lint`, at its anchor. */
export function meaningsPage(): Response {
  const rules = Object.entries(LINT_RULES).map(
    ([id, { severity, meaning }]) =>
      `<h2 id="${id}">${id}</h2>\n<p><strong class="${severity}">${severity}.</strong> ${escapeHtml(meaning)}</p>`,
  )
  return pageOf({
    title: 'What the findings mean · platformctl preview',
    style: STYLE,
    body: `<header><h1>What the findings mean</h1></header>
<main class="meanings"><p>platformctl email lint reports these. The preview shows them for each mail under Findings.</p>
${rules.join('\n')}</main>`,
  })
}

/** A page that is made here and follows each save: that of the courses, or of the languages. */
export function previewPage(open: 'courses' | 'languages', subject: string, main: string): Response {
  return pageOf({
    title: `${subject && `${subject} · `}${PLACES[open]} · platformctl preview`,
    style: STYLE,
    body: `<header><h1>${PLACES[open]}</h1>${pageLinks(open)}<p id="status" role="status">Watching the folder</p></header>
<main>${main}</main>`,
    script: FOLLOW,
  })
}

const PLACES = { mails: 'Mails', courses: 'Courses', languages: 'Languages' } as const

function pageLinks(open: keyof typeof PLACES): string {
  const links = Object.entries(PLACES).map(
    ([name, text]) =>
      `<a href="/${name === 'mails' ? '' : name}"${name === open ? ' aria-current="page"' : ''}>${text}</a>`,
  )
  return `<nav class="pages" aria-label="Preview">${links.join('')}</nav>`
}

/** Loads what the address says after a choice or a save; neither moves the place or the focus. */
const FOLLOW = `
const form = $('choice')
let turn = 0
const fit = (frame) => {
  const height = () => {
    const top = scrollY
    frame.style.height = '0'
    frame.style.height = frame.contentDocument.documentElement.scrollHeight + 'px'
    scrollTo(0, top)
  }
  frame.onload = height
  if (frame.contentDocument?.readyState === 'complete') height()
}
/* Without the style, whose nonce is another page's. */
const parsed = (text) => {
  const part = (name) => text.slice(text.indexOf('<' + name + '>'), text.indexOf('</' + name + '>'))
  return new DOMParser().parseFromString(part('title') + '</title>' + part('main'), 'text/html')
}
async function load(address) {
  const mine = ++turn
  const page = parsed(await (await fetch(address)).text())
  if (mine !== turn) return
  const next = page.getElementById('shown'), old = $('shown')
  if (!next) { location.reload(); return }
  const heights = [...old.querySelectorAll('iframe')].map((frame) => frame.style.height)
  old.replaceWith(next)
  next.querySelectorAll('iframe').forEach((frame, index) => { frame.style.height = heights[index] ?? ''; fit(frame) })
  document.title = page.title
  for (const field of form.querySelectorAll('input, select')) {
    const fresh = page.getElementById(field.id)
    for (const name of ['aria-invalid', 'aria-describedby']) fresh?.hasAttribute(name) ? field.setAttribute(name, fresh.getAttribute(name)) : field.removeAttribute(name)
  }
}
if (form) {
  all('iframe').forEach(fit)
  const chosen = () => location.pathname + '?' + new URLSearchParams(new FormData(form))
  const choose = () => { history.replaceState(null, '', chosen()); load(chosen()).catch(ended) }
  form.onchange = choose
  form.onsubmit = (event) => { event.preventDefault(); choose() }
  const ended = () => { $('status').textContent = 'The preview has ended' }
  const events = new EventSource('/events')
  events.onmessage = (event) => {
    const names = JSON.parse(event.data)
    load(chosen()).then(() => { $('status').textContent = (names.length > 3 ? plural(names.length, 'mail') : names.join(', ')) + ' saved' }, ended)
  }
  events.onerror = ended
}
`

/** A sentence of ours around values, escaped for HTML. */
export const say = (parts: TemplateStringsArray, ...values: readonly (string | number)[]) =>
  escapeHtml(String.raw(parts, ...values))

/** A text in a language of its own, in its direction. */
export const textIn = (language: string, text: string) =>
  `<bdi lang="${escapeHtml(language)}" dir="${directionOf(language)}">${escapeHtml(text)}</bdi>`

const names = new Intl.DisplayNames('en', { type: 'language', fallback: 'code' })

export const languageText = (language: string) => (isLanguage(language) && names.of(language)) || language

interface Options {
  readonly label?: string
  readonly options: readonly (readonly [value: string, text: string])[]
}

export const languageOptions = (tags: readonly string[]): readonly Options[] => [
  { options: [...new Set(tags)].map((tag) => [tag, `${languageText(tag)} (${tag})`]) },
]

export const field = (name: string, label: string, input: string) =>
  `<p class="field"><label for="${name}">${label}</label>${input}</p>`

export function selectField(name: string, label: string, chosen: string, groups: readonly Options[]): string {
  const lists = groups.map(({ label, options }) => {
    const all = options.map(
      ([value, text]) =>
        `<option value="${escapeHtml(value)}"${value === chosen ? ' selected' : ''}>${escapeHtml(text)}</option>`,
    )
    return label ? `<optgroup label="${escapeHtml(label)}">${all.join('')}</optgroup>` : all.join('')
  })
  return field(name, label, `<select id="${name}" name="${name}">${lists.join('')}</select>`)
}

const STYLE = `
[aria-invalid] { border-color: var(--bad); } form :is(input, select, button) { min-height: 40px; }
main { max-width: 76rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
form { display: flex; flex-wrap: wrap; gap: .75rem 1rem; align-items: end; padding: .9rem 1rem; border: 1px solid var(--line); border-radius: 12px; background: var(--paper); }
.field { margin: 0; display: grid; gap: .2rem; flex: 0 1 auto; min-width: 0; } .field label { font-size: .85rem; color: var(--quiet); }
h2 { font-size: 1.35rem; margin: 1.4rem 0 0; line-height: 1.25; overflow-wrap: anywhere; } h2 small { font-size: .85rem; font-weight: 400; color: var(--quiet); }
#shown > p { margin: .3rem 0; max-width: 52rem; } a.quiet { color: var(--quiet); font-size: .85rem; }
h3 { font-size: .95rem; margin: 1.4rem 0 .5rem; }
.timeline > li { display: grid; grid-template-columns: 17rem 12px minmax(0, 1fr); gap: 0 .9rem; }
.timeline > li > :not(.rail) { margin-block: .35rem; }
/* The line, and a dot on it. */
.rail { background: linear-gradient(var(--line), var(--line)) center / 2px 100% no-repeat; }
.rail i { display: block; width: 12px; height: 12px; margin-top: .95rem; border-radius: 50%; border: 2px solid var(--accent); background: var(--ground); }
.lesson .rail i { background: var(--accent); } .clock .rail i { border-color: var(--warn); border-radius: 2px; transform: rotate(45deg); }
time { text-align: right; white-space: nowrap; padding-top: .5rem; color: var(--quiet); font-variant-numeric: tabular-nums; } time b { color: var(--ink); } time small { display: inline-block; min-width: 3.9rem; padding-left: .3rem; text-align: left; }
.what { min-width: 0; margin: 0; padding-top: .5rem; overflow-wrap: anywhere; } .what p { margin: 0; } .lesson .what { padding: .5rem .85rem; border: 1px solid var(--line); border-radius: 10px; background: var(--paper); }
.what > p:first-child a:first-of-type { font-weight: 600; text-decoration: none; } .what > p:first-child a:first-of-type:hover { text-decoration: underline; }
.what .quiet { font-size: .85rem; } .day { display: inline-block; min-width: 5.4rem; color: var(--quiet); font-variant-numeric: tabular-nums; }
.clock .what { color: var(--warn); font-size: .9rem; }
.notes { margin: .3rem 0 0; display: grid; gap: .2rem; font-size: .87rem; } .notes li::before { content: '• '; } .notes .warning { color: var(--warn); } .notes .error { color: var(--bad); }
.blank { max-width: 44rem; }
.panes { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.25rem; align-items: start; }
.panes h3 { margin: .7rem 0 0; font-size: 1.05rem; } .panes .quiet { margin: 0 0 .6rem; } .panes bdi { unicode-bidi: isolate; }
.missing { margin: .7rem 0 0; padding: .5rem .75rem; border: 1px solid currentcolor; border-radius: 8px; color: var(--warn); }
iframe { display: block; width: 100%; height: 40rem; border: 0; box-shadow: 0 0 0 1px var(--line); border-radius: 10px; background: #fff; }
@media (max-width: 52rem) {
  main { padding-inline: .9rem; } .field { flex: 1 1 100%; } .field :is(input, select) { width: 100%; }
  .timeline > li { grid-template-columns: 12px minmax(0, 1fr); } .rail { grid-column: 1; grid-row: 1 / span 2; } time, .what { grid-column: 2; } time { text-align: left; } .timeline > li > time { margin-bottom: 0; } .begin .what, .clock .what { padding-top: 0; }
  .panes { grid-template-columns: minmax(0, 1fr); }
}
.meanings { max-width: 46rem; } .meanings h2 { font-size: 1.1rem; margin: 1.4rem 0 .1rem; scroll-margin: 1rem; } .meanings h2:target { color: var(--accent); } .meanings p { margin: 0; } strong[class] { text-transform: capitalize; }
`
