import { randomBytes } from 'node:crypto'

export function previewPolicy(nonce: string): string {
  return `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
}

/** The preview's one page: the gallery, and the chosen mail with its views, widths, schemes and slots. */
export function previewPage(): { html: string; nonce: string } {
  const nonce = randomBytes(16).toString('base64')
  const tab = (view: string, label: string) =>
    `<button role="tab" id="tab-${view}" data-view="${view}" aria-controls="view" aria-selected="${view === 'html'}">${label}</button>`
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
    <p id="facts"></p>
    <div role="tablist" aria-label="Views of the mail">${tab('html', 'HTML')}${tab('text', 'Plain text')}${tab('headers', 'Headers')}${tab('source', 'Source')}${tab('slots', 'Sample values')}</div>
    <div id="view" role="tabpanel" aria-labelledby="tab-html" tabindex="0"></div>
  </section>
</main>
<script nonce="${nonce}">${SCRIPT}</script>
</body>
</html>`,
  }
}

const STYLE = `
:root { --ground: #f6f5f2; --paper: #fff; --ink: #1d1f24; --quiet: #5c6069; --line: #dddad2; --accent: #3451b2; --chosen: #e9edfb; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14161a; --paper: #1c1f25; --ink: #eceef2; --quiet: #a3a9b5; --line: #333842; --accent: #9db2ff; --chosen: #262d45; --bad: #ff8a80; }
}
* { box-sizing: border-box; }
body { margin: 0; height: 100vh; display: flex; flex-direction: column; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: .7rem 1.25rem; border-bottom: 1px solid var(--line); background: var(--paper); }
h1 { font-size: 1.1rem; margin: 0; }
header p { margin: 0; color: var(--quiet); flex: 1; }
.switches { display: flex; gap: .75rem; }
.switches span { display: inline-flex; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.switches button { all: unset; padding: .25rem .8rem; cursor: pointer; color: var(--quiet); }
.switches button[aria-pressed=true] { background: var(--chosen); color: var(--ink); }
button:focus-visible, input:focus-visible, #view:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: 20rem 1fr; }
nav { overflow-y: auto; border-right: 1px solid var(--line); }
ol { list-style: none; margin: 0; padding: .75rem; display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .75rem; }
li button { all: unset; box-sizing: border-box; display: block; width: 100%; cursor: pointer; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; background: var(--paper); }
li button[aria-current=true] { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.thumb { display: block; height: 9rem; overflow: hidden; background: #fff; pointer-events: none; }
.thumb iframe { width: 600px; height: 800px; border: 0; transform: scale(.225); transform-origin: 0 0; }
li span.label { display: block; padding: .35rem .5rem; font-size: .78rem; line-height: 1.3; overflow-wrap: anywhere; }
section { min-width: 0; min-height: 0; display: flex; flex-direction: column; }
h2 { font-size: 1.15rem; margin: .8rem 1.25rem .1rem; }
#facts { margin: 0 1.25rem .6rem; color: var(--quiet); font-size: .9rem; font-variant-numeric: tabular-nums; }
.fault { color: var(--bad); font-weight: 600; }
[role=tablist] { display: flex; padding: 0 .75rem; border-bottom: 1px solid var(--line); overflow-x: auto; }
[role=tab] { all: unset; padding: .45rem .75rem; cursor: pointer; color: var(--quiet); border-bottom: 2px solid transparent; white-space: nowrap; }
[role=tab][aria-selected=true] { color: var(--ink); border-bottom-color: var(--accent); }
#view { flex: 1; min-height: 0; overflow: auto; }
#view iframe { display: block; min-height: 100%; margin: 0 auto; border: 0; max-width: 100%; background: #fff; }
pre { margin: 0; padding: 1.25rem; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.55 ui-monospace, monospace; }
form { padding: 1.25rem; display: grid; gap: .9rem; max-width: 44rem; }
label { display: grid; gap: .25rem; font-weight: 600; }
input { font: inherit; padding: .45rem .6rem; border: 1px solid var(--line); border-radius: 6px; background: var(--paper); color: var(--ink); }
@media (max-width: 52rem) {
  body { height: auto; } main { grid-template-columns: 1fr; } nav { border-right: 0; border-bottom: 1px solid var(--line); }
  ol { display: flex; overflow-x: auto; } li { flex: 0 0 8.5rem; } #view iframe { height: 80vh; }
}
`

const SCRIPT = `
const $ = (id) => document.getElementById(id)
let mails = [], chosen = location.hash.slice(1), view = 'html', width = 600, scheme = 'light'
const values = {}
const query = (name) => new URLSearchParams(Object.entries(values[name] ?? {}).map(([key, value]) => ['slot.' + key, value]))
const address = (name, kind, extra = {}) => { const all = query(name); for (const key in extra) all.set(key, extra[key]); return '/mails/' + name + '.' + kind + '?' + all }
const text = async (url) => { const answer = await fetch(url); return { ok: answer.ok, body: await answer.text() } }
const element = (tag, parts = {}, ...children) => { const made = Object.assign(document.createElement(tag), parts); made.append(...children); return made }

async function refresh(saved) {
  mails = await (await fetch('/mails.json')).json()
  if (!mails.some((mail) => mail.name === chosen)) chosen = mails[0].name
  const broken = mails.filter((mail) => mail.fault).length
  $('status').textContent = mails.length + ' mails' + (broken ? ', ' + broken + ' broken' : '') + (saved ? ' · ' + saved.join(', ').slice(0, 80) + ' saved' : ' · watching the folder')
  gallery(saved)
  await show(true)
}

function gallery(saved) {
  if ($('gallery').children.length === mails.length) {
    for (const [index, mail] of mails.entries()) {
      const item = $('gallery').children[index]
      item.firstChild.setAttribute('aria-current', String(mail.name === chosen))
      if (!saved || saved.includes(mail.name)) item.querySelector('iframe').src = address(mail.name, 'html', { scheme })
    }
    return
  }
  $('gallery').replaceChildren(...mails.map((mail) => {
    const frame = element('iframe', { title: '', tabIndex: -1, loading: 'lazy', src: address(mail.name, 'html', { scheme }) })
    const button = element('button', {}, element('span', { className: 'thumb', ariaHidden: 'true' }, frame), element('span', { className: 'label', textContent: mail.name }))
    button.setAttribute('aria-current', String(mail.name === chosen))
    button.onclick = () => { chosen = mail.name; history.replaceState(null, '', '#' + chosen); gallery([]); show(false) }
    return element('li', {}, button)
  }))
}

async function show(keep) {
  const mail = mails.find((one) => one.name === chosen)
  $('subject').textContent = mail.subject
  $('facts').classList.toggle('fault', Boolean(mail.fault))
  if (mail.fault) { $('facts').textContent = mail.fault; return }
  const facts = await (await fetch(address(mail.name, 'json'))).json()
  if (facts.headers) {
    const share = Math.round(facts.htmlBytes / facts.clipBytes * 100)
    $('facts').textContent = mail.name + ' · HTML ' + (facts.htmlBytes / 1024).toFixed(1) + ' KB, ' + share + ' % of where Gmail clips · ' + (facts.totalBytes / 1024).toFixed(1) + ' KB on the wire'
  }
  $('view').setAttribute('aria-labelledby', 'tab-' + view)
  const scrolled = $('view').scrollTop
  if (view === 'html') await showHtml(mail, keep)
  else if (view === 'slots') { if (!keep) $('view').replaceChildren(slots(mail)) }
  else {
    const content = view === 'headers' ? facts.headers.join('\\n') : (await text(address(mail.name, view === 'text' ? 'txt' : 'eml'))).body
    $('view').replaceChildren(element('pre', { textContent: content }))
  }
  if (keep) $('view').scrollTop = scrolled
}

/* The frame is as tall as its mail, so that the page scrolls and not the frame: its place survives a reload. */
async function showHtml(mail, keep) {
  const { ok, body } = await text(address(mail.name, 'html', { scheme }))
  if (!ok) { $('facts').textContent = body; $('facts').classList.add('fault'); return }
  let frame = $('view').querySelector('iframe')
  if (!frame || !keep) { frame = element('iframe', { title: 'HTML of ' + mail.name }); $('view').replaceChildren(frame) }
  frame.style.width = width + 'px'
  const loaded = new Promise((resolve) => { frame.onload = resolve })
  frame.src = address(mail.name, 'html', { scheme })
  await loaded
  const mailPage = frame.contentDocument
  frame.style.height = mailPage.body.scrollHeight + 'px'
}

function slots(mail) {
  const form = element('form')
  form.onsubmit = (event) => event.preventDefault()
  for (const [name, slot] of Object.entries(mail.slots)) {
    const input = element('input', { value: values[mail.name]?.[name] ?? slot.sample, type: slot.type === 'url' ? 'url' : 'text' })
    input.oninput = () => { values[mail.name] = { ...values[mail.name], [name]: input.value }; gallery([mail.name]) }
    form.append(element('label', {}, name + ' (' + slot.type + ')', input))
  }
  return form
}

const tabs = [...document.querySelectorAll('[role=tab]')]
const choose = (tab) => {
  view = tab.dataset.view
  for (const one of tabs) { one.setAttribute('aria-selected', String(one === tab)); one.tabIndex = one === tab ? 0 : -1 }
  if (mails.length) show(false)
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
for (const button of document.querySelectorAll('.switches button')) {
  button.onclick = () => {
    if (button.dataset.width) width = Number(button.dataset.width)
    else scheme = button.dataset.scheme
    for (const one of button.parentElement.children) one.setAttribute('aria-pressed', String(one === button))
    if (button.dataset.scheme) gallery()
    show(false)
  }
}
choose(tabs[0])
refresh()
const events = new EventSource('/events')
events.onmessage = (event) => refresh(JSON.parse(event.data))
events.onerror = () => { $('status').textContent = 'the preview has ended' }
`
