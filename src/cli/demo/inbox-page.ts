import { documentOf, type LocalPage } from '../local-page.ts'

export function contentSecurityPolicy(nonce: string): string {
  return `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'`
}

const VIEWS = ['html', 'text', 'headers', 'source'] as const

/** The demo's inbox as one page: the list of mails, and the chosen one as HTML, text, headers and source. */
export function inboxPage(): LocalPage {
  const tabs = VIEWS.map(
    (view) =>
      `<button role="tab" id="tab-${view}" data-view="${view}" aria-controls="view" aria-selected="false" tabindex="-1">${INBOX_TEXTS[view]}</button>`,
  ).join('')
  return documentOf({
    title: INBOX_TEXTS.title,
    style: STYLE,
    script: `const T = ${JSON.stringify(INBOX_TEXTS)}\n${SCRIPT}`,
    body: `<header>
  <h1>${INBOX_TEXTS.heading}</h1>
  <p id="status" role="status">${INBOX_TEXTS.waiting}</p>
  <button id="fresh" hidden></button>
  <input id="search" type="search" aria-label="${INBOX_TEXTS.search}" placeholder="${INBOX_TEXTS.search}" autocomplete="off">
</header>
<main>
  <nav aria-label="${INBOX_TEXTS.mails}"><ol id="list"></ol><p id="none" hidden>${INBOX_TEXTS.none}</p></nav>
  <article id="mail" aria-label="${INBOX_TEXTS.mail}" hidden>
    <h2 id="subject"></h2>
    <p id="meta"></p>
    <div id="tools">
      <span role="group" aria-label="${INBOX_TEXTS.width}"><button data-width="100%" aria-pressed="true">${INBOX_TEXTS.wide}</button><button data-width="360px" aria-pressed="false">${INBOX_TEXTS.narrow}</button></span>
      <span role="group" aria-label="${INBOX_TEXTS.scheme}"><button data-scheme="light" aria-pressed="true">${INBOX_TEXTS.light}</button><button data-scheme="dark" aria-pressed="false">${INBOX_TEXTS.dark}</button></span>
      <a id="download" download>${INBOX_TEXTS.download}</a>
    </div>
    <div role="tablist" aria-label="${INBOX_TEXTS.views}">${tabs}</div>
    <div id="view" role="tabpanel" aria-labelledby="tab-html" tabindex="0"></div>
  </article>
  <p id="empty">${INBOX_TEXTS.empty}</p>
</main>`,
  })
}

/** Runs in the page: plain JavaScript, because the inbox is served without a build. `T` holds the texts. */
const SCRIPT = `
const $ = (id) => document.getElementById(id)
const fill = (text, parts) => text.replace(/\\{(\\w+)\\}/g, (_, name) => parts[name])
const element = (tag, parts = {}, ...children) => { const made = Object.assign(document.createElement(tag), parts); made.append(...children); return made }
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })
const when = (mail) => mail.date ? day.format(new Date(mail.date)) : ''
let mails = [], chosen = 0, view = 'html', width = '100%', scheme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
/* Mails that were there when the reader last chose one are not news. */
let seen = 0, ended = false
const opened = new Set(), rows = new Map()

async function refresh() {
  mails = await (await fetch('/mails.json')).json()
  for (const mail of mails) if (!rows.has(mail.id)) addRow(mail)
  /* The first mail opens by itself; after that only the reader changes what is open. */
  if (chosen === 0 && mails.length > 0) open(mails.length)
  else draw()
}

/* A row is made once and stays: whatever arrives, the keyboard focus is where it was. */
function addRow(mail) {
  const mark = element('span', { className: 'unseen', textContent: T.unreadMark })
  const button = element('button', {}, element('i', { ariaHidden: 'true' }), mark, element('strong', { textContent: mail.subject }), element('span', { textContent: when(mail) + ' · ' + fill(T.to, mail) }))
  button.onclick = () => open(mail.id)
  const row = element('li', {}, button)
  rows.set(mail.id, { row, button, mark })
  $('list').prepend(row)
}

function open(id) {
  chosen = id
  opened.add(id)
  seen = mails.length
  draw()
}

function draw() {
  const words = $('search').value.trim().toLowerCase()
  let found = 0
  for (const mail of mails) {
    const { row, button, mark } = rows.get(mail.id)
    const matches = [mail.subject, mail.from, mail.to, mail.text].some((text) => text.toLowerCase().includes(words))
    if (matches) found += 1
    row.hidden = !matches
    row.classList.toggle('unread', !opened.has(mail.id))
    mark.hidden = opened.has(mail.id)
    button.setAttribute('aria-current', String(mail.id === chosen))
  }
  $('none').hidden = words === '' || found > 0
  const unread = mails.length - opened.size
  $('status').textContent = ended ? T.ended : mails.length === 0 ? T.waiting
    : words !== '' ? fill(T.found, { n: found, all: mails.length })
    : fill(mails.length === 1 ? T.one : T.many, { n: mails.length }) + (unread > 0 ? fill(T.unread, { n: unread }) : '')
  $('fresh').hidden = chosen === 0 || mails.length === seen
  $('fresh').textContent = fill(T.fresh, { n: mails.length - seen })
  drawMail(mails[chosen - 1])
}

function drawMail(mail) {
  $('mail').hidden = !mail
  $('empty').hidden = Boolean(mail)
  if (!mail) return
  $('subject').textContent = mail.subject
  $('meta').textContent = fill(T.meta, { ...mail, when: when(mail) })
  $('download').href = '/mails/' + mail.id + '.eml?download'
  const shown = [mail.id, view, scheme].join()
  if ($('view').dataset.shown !== shown) {
    $('view').dataset.shown = shown
    $('view').setAttribute('aria-labelledby', 'tab-' + view)
    $('view').replaceChildren(body(mail))
    $('view').scrollTop = 0
  }
  const frame = $('view').querySelector('iframe')
  if (frame) frame.style.width = width
}

function body(mail) {
  if (view === 'html') return element('iframe', { title: fill(T.frame, mail), className: scheme, src: '/mails/' + mail.id + '.html?scheme=' + scheme })
  if (view === 'headers') {
    const table = element('table')
    for (const { name, value } of mail.headers) {
      const row = table.insertRow()
      row.append(element('th', { scope: 'row', textContent: name }))
      row.insertCell().textContent = value
    }
    return table
  }
  const text = element('pre')
  if (view === 'text') text.textContent = mail.text
  else fetch('/mails/' + mail.id + '.eml').then((answer) => answer.text()).then((source) => { text.textContent = source })
  return text
}

const tabs = [...document.querySelectorAll('[role=tab]')]
const choose = (tab) => {
  view = tab.dataset.view
  for (const one of tabs) { one.setAttribute('aria-selected', String(one === tab)); one.tabIndex = one === tab ? 0 : -1 }
  draw()
}
for (const tab of tabs) {
  tab.onclick = () => choose(tab)
  tab.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!step) return
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length]
    choose(next)
    next.focus()
  }
}
const press = () => {
  for (const button of document.querySelectorAll('#tools button')) button.setAttribute('aria-pressed', String(button.dataset.width ? button.dataset.width === width : button.dataset.scheme === scheme))
}
for (const button of document.querySelectorAll('#tools button')) button.onclick = () => {
  if (button.dataset.width) width = button.dataset.width
  else scheme = button.dataset.scheme
  press()
  draw()
}
$('search').oninput = draw
$('fresh').onclick = () => {
  $('search').value = ''
  open(mails.length)
  rows.get(mails.length).button.focus()
}
press()
choose(tabs[0])
const events = new EventSource('/events')
events.onmessage = refresh
events.onerror = () => { ended = true; draw() }
events.onopen = () => { ended = false; refresh() }
`

const STYLE = `
:root { --ground: #f6f5f2; --paper: #fff; --ink: #1d1f24; --quiet: #5c6069; --line: #dddad2; --accent: #3451b2; --on-accent: #fff; --chosen: #e9edfb; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14161a; --paper: #1c1f25; --ink: #eceef2; --quiet: #a3a9b5; --line: #333842; --accent: #9db2ff; --on-accent: #14161a; --chosen: #262d45; }
}
* { box-sizing: border-box; }
body { margin: 0; height: 100vh; display: flex; flex-direction: column; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: .6rem 1.25rem; border-bottom: 1px solid var(--line); background: var(--paper); }
h1 { font-size: 1.1rem; margin: 0; }
header p { margin: 0; color: var(--quiet); font-variant-numeric: tabular-nums; }
#search { margin-left: auto; width: 15rem; max-width: 100%; font: inherit; padding: .35rem .65rem; border: 1px solid var(--line); border-radius: 8px; background: var(--ground); color: var(--ink); }
#search::placeholder { color: var(--quiet); opacity: 1; }
#fresh { all: unset; padding: .25rem .8rem; border-radius: 99px; background: var(--accent); color: var(--on-accent); font-weight: 600; cursor: pointer; }
#fresh[hidden] { display: none; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(16rem, 24rem) minmax(0, 1fr); }
nav { overflow-y: auto; border-right: 1px solid var(--line); }
ol { list-style: none; margin: 0; padding: 0; }
#none { padding: .7rem 1.25rem; margin: 0; color: var(--quiet); }
li button { all: unset; box-sizing: border-box; display: block; position: relative; width: 100%; padding: .7rem 1.25rem .7rem 1.75rem; border-bottom: 1px solid var(--line); cursor: pointer; }
li button:hover { background: var(--paper); }
li button[aria-current=true] { background: var(--chosen); box-shadow: inset 3px 0 var(--accent); }
li strong, li span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
li strong { font-weight: 400; }
li.unread strong { font-weight: 700; }
li span { color: var(--quiet); font-size: .85rem; }
li i { display: none; position: absolute; left: .7rem; top: 1.25rem; width: .5rem; height: .5rem; border-radius: 99px; background: var(--accent); }
li.unread i { display: block; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
button:focus-visible, a:focus-visible, input:focus-visible, #view:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
#fresh:focus-visible { outline-offset: 2px; }
article { min-width: 0; min-height: 0; display: flex; flex-direction: column; background: var(--paper); }
article[hidden], #empty[hidden] { display: none; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 1.1rem 1.5rem .2rem; overflow-wrap: anywhere; }
#meta { margin: 0 1.5rem .6rem; color: var(--quiet); font-size: .9rem; overflow-wrap: anywhere; }
#tools { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; margin: 0 1.5rem .5rem; font-size: .9rem; }
#tools span { display: inline-flex; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
#tools button { all: unset; padding: .2rem .75rem; cursor: pointer; color: var(--quiet); }
#tools button[aria-pressed=true] { background: var(--chosen); color: var(--ink); }
#tools button:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
#tools a { color: var(--accent); }
[role=tablist] { display: flex; gap: .25rem; padding: 0 1.25rem; border-bottom: 1px solid var(--line); overflow-x: auto; }
[role=tab] { all: unset; padding: .45rem .75rem; cursor: pointer; color: var(--quiet); border-bottom: 2px solid transparent; white-space: nowrap; }
[role=tab][aria-selected=true] { color: var(--ink); border-bottom-color: var(--accent); }
[role=tab]:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
#view { flex: 1; min-height: 0; overflow: auto; background: var(--ground); }
iframe { display: block; width: 100%; max-width: 100%; height: 100%; margin: 0 auto; border: 0; background: #fff; }
iframe.dark { background: #14161a; }
pre { margin: 0; padding: 1.25rem 1.5rem; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.55 ui-monospace, monospace; background: var(--paper); min-height: 100%; }
table { border-collapse: collapse; margin: 1rem 1.5rem; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; overflow-wrap: anywhere; }
th { white-space: nowrap; font-weight: 600; color: var(--quiet); }
#empty { margin: auto; padding: 2rem; color: var(--quiet); }
@media (max-width: 44rem) {
  body { height: auto; min-height: 100vh; }
  header { padding: .6rem 1rem; } #search { margin: 0; width: 100%; min-height: 44px; } #fresh { padding: .55rem 1rem; }
  main { grid-template-columns: minmax(0, 1fr); align-content: start; }
  nav { max-height: 38vh; border-right: 0; border-bottom: 1px solid var(--line); }
  h2, #meta, #tools { margin-left: 1rem; margin-right: 1rem; } [role=tablist] { padding: 0 .25rem; }
  #tools button, #tools a, [role=tab] { min-height: 44px; display: inline-flex; align-items: center; box-sizing: border-box; }
  #view { min-height: 60vh; } iframe { height: 75vh; } th { white-space: normal; }
}
`

/** Texts of the inbox; the page fills in `{n}` and the like. */
export const INBOX_TEXTS = {
  title: 'Inbox · platformctl demo',
  heading: 'Inbox',
  waiting: 'Waiting for the first mail …',
  one: '1 mail',
  many: '{n} mails',
  unread: ', {n} unread',
  found: '{n} of {all} found',
  fresh: '{n} new: show the newest',
  ended: 'The demo has ended',
  search: 'Search mails',
  mails: 'Mails',
  mail: 'Mail',
  views: 'Views of the mail',
  html: 'HTML',
  text: 'Plain text',
  headers: 'Headers',
  source: 'Source',
  width: 'Width',
  wide: 'Desktop',
  narrow: 'Phone',
  scheme: 'Color scheme of the mail',
  light: 'Light',
  dark: 'Dark',
  download: 'Download .eml',
  to: 'to {to}',
  meta: 'From {from} to {to} · {when}',
  unreadMark: 'Unread',
  frame: 'HTML of {subject}',
  empty: 'Mails appear here as they arrive.',
  none: 'No mail matches.',
} as const
