import { LINT_RULES } from '../../core/mail/lint/rules.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import { documentOf, type LocalPage } from '../local-page.ts'
import { pageLinks } from './frame.ts'
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
