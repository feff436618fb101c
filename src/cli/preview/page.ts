import { randomBytes } from 'node:crypto'
import { SCRIPT } from './script.ts'
import { STYLE } from './style.ts'

export function previewPolicy(nonce: string): string {
  return `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
}

const TABS = [
  ['html', 'HTML'],
  ['all', 'All four'],
  ['text', 'Plain text'],
  ['headers', 'Headers'],
  ['source', 'Source'],
  ['findings', 'Findings'],
  ['slots', 'Sample values'],
] as const

/** The preview's one page: the gallery, and the chosen mail with its views, widths, schemes and slots. */
export function previewPage(): { html: string; nonce: string } {
  const nonce = randomBytes(16).toString('base64')
  const tabs = TABS.map(
    ([view, label]) =>
      `<button role="tab" id="tab-${view}" data-view="${view}" aria-controls="view" aria-selected="false" tabindex="-1">${label}${view === 'findings' ? '<span id="count"></span>' : ''}</button>`,
  ).join('')
  return {
    nonce,
    html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Mails · platformctl preview</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<header>
  <h1>Mails</h1>
  <p id="status" role="status">compiling …</p>
  <div class="switches">
    <span role="group" aria-label="Width"><button data-width="600" aria-pressed="true">Desktop</button><button data-width="360" aria-pressed="false">Phone</button></span>
    <span role="group" aria-label="Colour scheme"><button data-scheme="light" aria-pressed="true">Light</button><button data-scheme="dark" aria-pressed="false">Dark</button></span>
  </div>
</header>
<main>
  <nav aria-label="Mails"><ol id="gallery"></ol></nav>
  <section aria-label="Chosen mail">
    <h2 id="subject"></h2>
    <p id="facts"><span id="sizes"></span> <meter id="clip" min="0" low="40960" high="81920" optimum="0" hidden></meter></p>
    <p id="fault" role="alert" hidden></p>
    <div role="tablist" aria-label="Views of the mail">${tabs}</div>
    <div id="view" role="tabpanel" aria-labelledby="tab-html" tabindex="0"></div>
  </section>
</main>
<script nonce="${nonce}">${SCRIPT}</script>
</body>
</html>`,
  }
}
