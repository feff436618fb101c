import { LINT_RULES } from '../../core/mail/lint/rules.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import { directionOf } from '../../core/messages/messages.ts'
import { documentOf, type LocalPage } from '../local-page.ts'
import { SCRIPT } from './script.ts'
import { STYLE } from './style.ts'
import { PREVIEW_TEXTS as T } from './texts.ts'

/** The Content-Security-Policy of a preview page. `forms`: it may post its form to the preview. */
export function previewPolicy(nonce: string, { forms = false } = {}): string {
  return `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; form-action ${forms ? "'self'" : "'none'"}; frame-ancestors 'none'`
}

const TABS = ['html', 'all', 'text', 'headers', 'source', 'findings', 'slots'] as const

/** The page of the mails: the gallery, and the chosen mail with its views, widths, schemes and slots. */
export function previewPage(): LocalPage {
  const tabs = TABS.map(
    (view) =>
      `<button role="tab" id="tab-${view}" data-view="${view}" aria-controls="view" aria-selected="false" tabindex="-1">${T[view]}${view === 'findings' ? '<span id="count"></span>' : ''}</button>`,
  ).join('')
  return documentOf({
    title: T.title,
    style: STYLE,
    body: `<header>
  <h1>${T.heading}</h1>
  ${pageLinks('mails')}
  <p id="status" role="status">${T.compiling}</p>
  <input id="filter" type="search" aria-label="${T.filter}" placeholder="${T.filter}" autocomplete="off">
  <div class="switches">
    <span role="group" aria-label="${T.width}"><button data-width="600" aria-pressed="true">${T.wide}</button><button data-width="360" aria-pressed="false">${T.narrow}</button></span>
    <span role="group" aria-label="${T.scheme}"><button data-scheme="light" aria-pressed="true">${T.light}</button><button data-scheme="dark" aria-pressed="false">${T.dark}</button></span>
  </div>
</header>
<main>
  <nav aria-label="${T.heading}"><ol id="gallery"></ol><p id="nomatch" hidden>${T.noMatch}</p></nav>
  <section aria-label="${T.chosen}">
    <h2 id="subject"></h2>
    <p id="preheader"></p>
    <p id="facts"><span id="sizes"></span> <meter id="clip" min="0" low="40960" high="81920" optimum="0" hidden></meter></p>
    <p id="fault" role="alert" hidden></p>
    <p id="tools"><button id="copy">${T.copy}</button> <a id="download" download>${T.download}</a> <button id="send" aria-expanded="false" aria-controls="sender">${T.send}</button> <span id="said" role="status"></span></p>
    <form id="sender" hidden><label for="to">${T.sendTo}</label> <select id="to"></select> <button>${T.sendNow}</button></form>
    <div role="tablist" aria-label="${T.views}">${tabs}</div>
    <div id="view" role="tabpanel" aria-labelledby="tab-html" tabindex="0"></div>
  </section>
</main>`,
    script: `const T = ${JSON.stringify(T)}
${SCRIPT}`,
  })
}

/** The section of the reference on each finding of `email lint`, at its anchor. */
export function meaningsPage(): LocalPage {
  const rules = Object.entries(LINT_RULES).map(
    ([id, { severity, meaning }]) =>
      `<h2 id="${id}">${id}</h2>\n<p><strong class="${severity}">${T[severity]}.</strong> ${escapeHtml(meaning)}</p>`,
  )
  return documentOf({
    title: `${T.meanings} · platformctl preview`,
    style: STYLE,
    bodyClass: 'meanings',
    body: `<header><h1>${T.meanings}</h1></header>
<article role="main"><p>${T.meaningsLead}</p>
${rules.join('\n')}</article>`,
  })
}

/**
 * Runs in the pages of courses and languages: plain JavaScript, because the preview is served without a build. A choice
 * goes into the address, and a save loads what the address says again; neither moves the place or the focus.
 */
export const FOLLOW = `
const form = document.getElementById('choice'), status = document.getElementById('status')
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
  const next = page.getElementById('shown'), old = document.getElementById('shown')
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
  document.querySelectorAll('iframe').forEach(fit)
  const chosen = () => location.pathname + '?' + new URLSearchParams(new FormData(form))
  const choose = () => { history.replaceState(null, '', chosen()); load(chosen()).catch(ended) }
  form.onchange = choose
  form.onsubmit = (event) => { event.preventDefault(); choose() }
  const ended = () => { status.textContent = form.dataset.ended }
  const events = new EventSource('/events')
  events.onmessage = (event) => {
    const names = JSON.parse(event.data)
    load(chosen()).then(() => { status.textContent = form.dataset.saved.replace('{names}', names.length > 3 ? names.length + ' mails' : names.join(', ')) }, ended)
  }
  events.onerror = ended
}
`

const PLACES = { mails: '/', courses: '/courses', languages: '/languages' } as const

/** Links to the pages of the preview, the one that is open marked. */
export function pageLinks(open: keyof typeof PLACES): string {
  const links = Object.entries(PLACES).map(
    ([name, path]) =>
      `<a href="${path}"${name === open ? ' aria-current="page"' : ''}>${T.pages[name as keyof typeof PLACES]}</a>`,
  )
  return `<nav class="pages" aria-label="${T.preview}">${links.join('')}</nav>`
}

/** A text with its `{names}` filled in, escaped for HTML. */
export function filled(text: string, parts: Readonly<Record<string, string | number>> = {}): string {
  return escapeHtml(text.replaceAll(/\{(\w+)\}/g, (all, name) => String(parts[name] ?? all)))
}

/** A text in a language of its own, in its direction. */
export function textIn(language: string, text: string): string {
  return `<bdi lang="${escapeHtml(language)}" dir="${directionOf(language)}">${escapeHtml(text)}</bdi>`
}

/** A `select` with its label. */
export function selectField(field: {
  readonly name: string
  readonly label: string
  readonly chosen: string
  readonly groups: readonly {
    readonly label?: string
    readonly options: readonly (readonly [string, string])[]
  }[]
}): string {
  const { name, label, chosen, groups } = field
  const options = groups.map(({ label, options }) => {
    const all = options.map(
      ([value, text]) =>
        `<option value="${escapeHtml(value)}"${value === chosen ? ' selected' : ''}>${escapeHtml(text)}</option>`,
    )
    return label === undefined
      ? all.join('')
      : `<optgroup label="${escapeHtml(label)}">${all.join('')}</optgroup>`
  })
  return `<p class="field"><label for="${name}">${escapeHtml(label)}</label><select id="${name}" name="${name}">${options.join('')}</select></p>`
}

/** Attributes for a page's form, with the texts that its script shows after a save. */
export function followed(): string {
  return ` data-saved="${escapeHtml(T.saved)}" data-ended="${escapeHtml(T.ended)}"`
}
