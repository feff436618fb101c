import { documentOf, type LocalPage } from '../../local-page.ts'
import { SCRIPT } from './script.ts'
import { STYLE } from './style.ts'
import { INBOX_TEXTS as T } from './texts.ts'

export function contentSecurityPolicy(nonce: string): string {
  return `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
}

const VIEWS = ['html', 'text', 'headers', 'source'] as const

/** The demo's inbox as one page: the list of mails, and the chosen one as HTML, text, headers and source. */
export function inboxPage(): LocalPage {
  const tabs = VIEWS.map(
    (view) =>
      `<button role="tab" id="tab-${view}" data-view="${view}" aria-controls="view" aria-selected="false" tabindex="-1">${T[view]}</button>`,
  ).join('')
  return documentOf({
    title: T.title,
    style: STYLE,
    script: `const T = ${JSON.stringify(T)}\n${SCRIPT}`,
    body: `<header>
  <h1>${T.heading}</h1>
  <p id="status" role="status">${T.waiting}</p>
  <button id="fresh" hidden></button>
  <input id="search" type="search" aria-label="${T.search}" placeholder="${T.search}" autocomplete="off">
</header>
<main>
  <nav aria-label="${T.mails}"><ol id="list"></ol><p id="none" hidden>${T.none}</p></nav>
  <article id="mail" aria-label="${T.mail}" hidden>
    <h2 id="subject"></h2>
    <p id="meta"></p>
    <div id="tools">
      <span role="group" aria-label="${T.width}"><button data-width="100%" aria-pressed="true">${T.wide}</button><button data-width="360px" aria-pressed="false">${T.narrow}</button></span>
      <span role="group" aria-label="${T.scheme}"><button data-scheme="light" aria-pressed="true">${T.light}</button><button data-scheme="dark" aria-pressed="false">${T.dark}</button></span>
      <a id="download" download>${T.download}</a>
    </div>
    <div role="tablist" aria-label="${T.views}">${tabs}</div>
    <div id="view" role="tabpanel" aria-labelledby="tab-html" tabindex="0"></div>
  </article>
  <p id="empty">${T.empty}</p>
</main>`,
  })
}
