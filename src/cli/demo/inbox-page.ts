import { randomBytes } from 'node:crypto'

export function contentSecurityPolicy(nonce: string): string {
  return `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
}

/** The demo's inbox as one page: the list of mails, and the chosen one as HTML, text, headers and source. */
export function inboxPage(): { html: string; nonce: string } {
  const nonce = randomBytes(16).toString('base64')
  return {
    nonce,
    html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Inbox · platformctl demo</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<header>
  <h1>Inbox</h1>
  <p id="status" role="status">waiting for the first mail …</p>
</header>
<main>
  <nav aria-label="Mails"><ol id="list"></ol></nav>
  <article id="mail" aria-label="Mail" hidden>
    <h2 id="subject"></h2>
    <p id="meta"></p>
    <div role="tablist" aria-label="Views of the mail">
      <button role="tab" id="tab-html" data-view="html" aria-controls="view" aria-selected="true">HTML</button>
      <button role="tab" id="tab-text" data-view="text" aria-controls="view" aria-selected="false">Plain text</button>
      <button role="tab" id="tab-headers" data-view="headers" aria-controls="view" aria-selected="false">Headers</button>
      <button role="tab" id="tab-source" data-view="source" aria-controls="view" aria-selected="false">Source</button>
    </div>
    <div id="view" role="tabpanel" aria-labelledby="tab-html" tabindex="0"></div>
  </article>
  <p id="empty">Mails appear here by themselves as they arrive.</p>
</main>
<script nonce="${nonce}">${SCRIPT}</script>
</body>
</html>`,
  }
}

const STYLE = `
:root { --ground: #f6f5f2; --paper: #fff; --ink: #1d1f24; --quiet: #5c6069; --line: #dddad2; --accent: #3451b2; --chosen: #e9edfb; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14161a; --paper: #1c1f25; --ink: #eceef2; --quiet: #a3a9b5; --line: #333842; --accent: #9db2ff; --chosen: #262d45; }
}
* { box-sizing: border-box; }
body { margin: 0; height: 100vh; display: flex; flex-direction: column; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; gap: 1rem; align-items: baseline; padding: .9rem 1.25rem; border-bottom: 1px solid var(--line); background: var(--paper); }
h1 { font-size: 1.1rem; margin: 0; }
header p { margin: 0; color: var(--quiet); font-variant-numeric: tabular-nums; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(16rem, 24rem) 1fr; }
nav { overflow-y: auto; border-right: 1px solid var(--line); }
ol { list-style: none; margin: 0; padding: 0; }
li button { all: unset; box-sizing: border-box; display: block; width: 100%; padding: .7rem 1.25rem; border-bottom: 1px solid var(--line); cursor: pointer; }
li button:hover { background: var(--paper); }
li button[aria-current=true] { background: var(--chosen); box-shadow: inset 3px 0 var(--accent); }
li strong, li span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
li strong { font-weight: 600; }
li span { color: var(--quiet); font-size: .85rem; }
button:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
article { min-width: 0; display: flex; flex-direction: column; background: var(--paper); }
article[hidden], #empty[hidden] { display: none; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 1.1rem 1.5rem .2rem; }
#meta { margin: 0 1.5rem .8rem; color: var(--quiet); font-size: .9rem; }
[role=tablist] { display: flex; gap: .25rem; padding: 0 1.25rem; border-bottom: 1px solid var(--line); overflow-x: auto; }
[role=tab] { all: unset; padding: .45rem .75rem; cursor: pointer; color: var(--quiet); border-bottom: 2px solid transparent; white-space: nowrap; }
[role=tab][aria-selected=true] { color: var(--ink); border-bottom-color: var(--accent); }
[role=tab]:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
#view { flex: 1; min-height: 0; overflow: auto; }
iframe { display: block; width: 100%; height: 100%; border: 0; background: #fff; }
@media (prefers-color-scheme: dark) { iframe { background: #14161a; } }
pre { margin: 0; padding: 1.25rem 1.5rem; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.55 ui-monospace, monospace; }
table { border-collapse: collapse; margin: 1rem 1.5rem; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; overflow-wrap: anywhere; }
th { white-space: nowrap; font-weight: 600; color: var(--quiet); }
#empty { margin: auto; padding: 2rem; color: var(--quiet); }
@media (max-width: 44rem) {
  body { height: auto; min-height: 100vh; }
  main { grid-template-columns: 1fr; }
  nav { max-height: 38vh; border-right: 0; border-bottom: 1px solid var(--line); }
  #view { min-height: 60vh; }
  iframe { height: 75vh; }
}
`

const SCRIPT = `
const $ = (id) => document.getElementById(id)
let mails = [], chosen = 0, followed = true, view = 'html'
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })
const when = (mail) => mail.date ? day.format(new Date(mail.date)) : ''

async function refresh() {
  mails = await (await fetch('/mails.json')).json()
  $('status').textContent = mails.length === 0 ? 'waiting for the first mail …' : mails.length + (mails.length === 1 ? ' mail' : ' mails')
  if (mails.length > 0 && (followed || chosen === 0)) chosen = mails.length
  draw()
}

function draw() {
  $('list').replaceChildren(...mails.map((mail) => {
    const button = document.createElement('button'), title = document.createElement('strong'), line = document.createElement('span')
    title.textContent = mail.subject
    line.textContent = when(mail) + ' · to ' + mail.to
    button.append(title, line)
    button.setAttribute('aria-current', String(mail.id === chosen))
    button.onclick = () => { chosen = mail.id; followed = mail.id === mails.length; draw() }
    const item = document.createElement('li')
    item.append(button)
    return item
  }).reverse())
  const mail = mails[chosen - 1]
  $('mail').hidden = !mail
  $('empty').hidden = Boolean(mail)
  if (!mail) return
  $('subject').textContent = mail.subject
  $('meta').textContent = 'from ' + mail.from + ' to ' + mail.to + ' · ' + when(mail)
  const shown = mail.id + view
  if ($('view').dataset.shown === shown) return
  $('view').dataset.shown = shown
  $('view').setAttribute('aria-labelledby', 'tab-' + view)
  $('view').replaceChildren(body(mail))
}

function body(mail) {
  if (view === 'html') {
    const frame = document.createElement('iframe')
    frame.title = 'HTML of ' + mail.subject
    frame.src = '/mails/' + mail.id + '.html'
    return frame
  }
  if (view === 'headers') {
    const table = document.createElement('table')
    for (const header of mail.headers) {
      const row = table.insertRow(), name = document.createElement('th')
      name.scope = 'row'
      name.textContent = header.name
      row.append(name)
      row.insertCell().textContent = header.value
    }
    return table
  }
  const text = document.createElement('pre')
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
choose(tabs[0])
refresh()
const events = new EventSource('/events')
events.onmessage = refresh
events.onerror = () => { $('status').textContent = mails.length + ' mails · the demo has ended' }
events.onopen = refresh
`
