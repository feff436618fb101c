import { documentOf, type LocalPage } from '../local-page.ts'

/** Texts of the page; it fills in `{service}`. */
export const LIVE_TEXTS = {
  title: 'Your platform, this week',
  tabs: 'Pages of the platform',
  live: 'Status',
  inbox: 'Inbox',
  lessons: 'Lessons',
  insights: 'Insights',
  story: 'What happened',
  waiting: 'Starting …',
  phone: 'Newest mail, as on a phone',
  noMail: 'Mails land here.',
  buttons: 'Break it',
  mail: 'Break mail',
  service: 'Stop {service}',
  store: 'Hang the store',
  announce: 'Announce maintenance',
  bounce: 'Post a bounce',
  heal: 'Heal',
  looking: 'The daemon is looking …',
  terminal: 'The same in a terminal:',
  copy: 'Copy',
  copied: 'Copied',
  ended: 'The demo has ended. Start it again with npm start.',
  alert: 'Alert',
  healed: 'Healed: everything answers again',
  broke: {
    mail: 'The mail server refuses every connection',
    service: '{service} does not answer',
    store: 'Another program holds the lock of the store',
  },
  announcement: 'Maintenance: signing in takes a break of ten minutes this evening.',
  announced: 'Maintenance is announced',
  failed: 'That did not work',
  bounced: 'A bounce was reported: that address gets no more mail',
} as const

const BUTTONS = ['mail', 'service', 'store', 'announce', 'bounce', 'heal'] as const
const TABS = ['live', 'inbox', 'lessons', 'insights'] as const

/** The demo on one page: its story, the real status page, the newest mail, and what breaks and heals. */
export function livePage(): LocalPage {
  const T = LIVE_TEXTS
  return documentOf({
    title: T.title,
    style: STYLE,
    script: `const T = ${JSON.stringify(T)}\n${SCRIPT}`,
    body: `<header>
  <h1><span id="name"></span>${T.title}</h1>
  <nav aria-label="${T.tabs}">${TABS.map((tab) => `<button data-tab="${tab}" aria-pressed="${tab === 'live'}">${T[tab]}</button>`).join('')}</nav>
</header>
<main>
  <section id="rail" aria-labelledby="story-head" tabindex="0"><h2 id="story-head">${T.story}</h2><ol id="story" aria-live="polite"><li>${T.waiting}</li></ol></section>
  <iframe id="site" title="${T.live}"></iframe>
  <section id="phone" aria-label="${T.phone}">
    <div id="alert" role="status" hidden><strong></strong><span></span></div>
    <p id="from"></p>
    <iframe id="mail" title="${T.phone}" hidden></iframe>
    <p id="none">${T.noMail}</p>
  </section>
</main>
<footer>
  <div id="buttons" role="group" aria-label="${T.buttons}">${BUTTONS.map((name) => `<button data-act="${name}" disabled>${T[name]}</button>`).join('')}<span id="looking" role="status"></span></div>
  <p id="strip"><span>${T.terminal}</span> <code id="command"></code> <button id="copy">${T.copy}</button></p>
</footer>`,
  })
}

/** Runs in the page: plain JavaScript, because the page is served without a build. `T` holds the texts. */
const SCRIPT = `
const $ = (id) => document.getElementById(id)
const all = (selector) => document.querySelectorAll(selector)
let state = { story: [], alerts: [], broken: [], can: [] }, tab = 'live', told = 0, shownMail = 0

const SITES = { live: '/', lessons: '/lessons/1', insights: '/insights' }
function showSite() {
  if (!state.site) return
  /* Set again, it loads again: the verdict of now. */
  $('site').src = tab === 'inbox' ? '/inbox' : state.site + SITES[tab]
  $('site').title = T[tab]
}

function draw() {
  $('name').textContent = state.name ? state.name + ': ' : ''
  while (told < state.story.length) {
    if (told === 0) $('story').replaceChildren()
    const line = document.createElement('li')
    const at = document.createElement('time')
    at.dateTime = state.story[told].at
    at.textContent = day.format(new Date(state.story[told].at))
    line.append(at, ' ', state.story[told].text)
    $('story').append(line)
    $('rail').scrollTop = $('rail').scrollHeight
    told += 1
  }
  for (const button of all('[data-act]')) {
    const { act } = button.dataset
    const isFault = ['mail', 'service', 'store'].includes(act)
    button.hidden = isFault && !state.can.includes(act)
    const isHung = !isFault && state.broken.includes('store')
    button.disabled = !state.site || (act === 'heal' ? state.broken.length === 0 : isHung || state.broken.includes(act))
    button.textContent = T[act].replace('{service}', state.service)
  }
  const alert = state.alerts.at(-1)
  $('alert').hidden = !alert
  if (alert) {
    $('alert').firstChild.textContent = alert.title
    $('alert').lastChild.textContent = alert.text.split('\\n')[0]
  }
  $('looking').textContent = state.isLooking ? T.looking : ''
  $('command').textContent = state.command
}
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', hour: '2-digit', minute: '2-digit' })

async function refresh() {
  const [live, mails] = await Promise.all(['/live.json', '/mails.json'].map(async (path) => (await fetch(path)).json()))
  const isNew = live.site !== state.site
  const hasMoved = live.version !== state.version
  /* The oldest lines are dropped in a long demo. */
  if (live.story.length <= told && live.story.at(-1)?.at !== state.story.at(-1)?.at) { told = 0 }
  state = live
  draw()
  if (isNew || (hasMoved && tab === 'live')) showSite()
  const mail = mails.at(-1)
  if (mail && mail.id !== shownMail) {
    shownMail = mail.id
    $('none').hidden = true
    $('mail').hidden = false
    $('mail').src = '/mails/' + mail.id + '.html'
    $('from').textContent = mail.subject
  }
}

for (const button of all('[data-tab]')) button.onclick = () => {
  tab = button.dataset.tab
  for (const one of all('[data-tab]')) one.setAttribute('aria-pressed', String(one === button))
  showSite()
}
for (const button of all('[data-act]')) button.onclick = () => {
  button.disabled = true
  fetch('/act/' + button.dataset.act, { method: 'POST', headers: { 'X-Live': '1' } }).then(refresh)
}
$('copy').onclick = async () => {
  await navigator.clipboard.writeText(state.command)
  $('copy').textContent = T.copied
  setTimeout(() => { $('copy').textContent = T.copy }, 2000)
}
const events = new EventSource('/events')
/* Several events in a row are one look. */
let due
events.onmessage = () => { clearTimeout(due); due = setTimeout(refresh, 100) }
events.onopen = refresh
events.onerror = () => { $('looking').textContent = T.ended; for (const button of all('[data-act]')) button.disabled = true }
`

const STYLE = `
:root { --ground: #f6f5f2; --paper: #fff; --ink: #1d1f24; --quiet: #5c6069; --line: #dddad2; --accent: #3451b2; --on-accent: #fff; --chosen: #e9edfb; --bad: #b3261e; --ok: #1e7a46; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14161a; --paper: #1c1f25; --ink: #eceef2; --quiet: #a3a9b5; --line: #333842; --accent: #9db2ff; --on-accent: #14161a; --chosen: #262d45; --bad: #ff8a80; --ok: #6fcf97; }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; height: 100vh; display: flex; flex-direction: column; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header, footer { padding: .6rem 1.25rem; background: var(--paper); border: 0 solid var(--line); }
header { border-bottom-width: 1px; display: flex; flex-wrap: wrap; gap: .4rem 1.5rem; align-items: center; }
footer { border-top-width: 1px; }
h1 { font-size: 1.1rem; margin: 0; }
h2 { font-size: .85rem; margin: 0 0 .6rem; color: var(--quiet); font-weight: 600; }
nav { display: flex; flex-wrap: wrap; gap: .25rem; }
button { font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--line); border-radius: 8px; padding: .35rem .85rem; min-height: 2.3rem; cursor: pointer; }
button[aria-pressed=true] { background: var(--chosen); border-color: var(--accent); }
button[data-act] { font-weight: 600; border-color: var(--bad); color: var(--bad); }
button[data-act=announce], button[data-act=bounce] { border-color: var(--accent); color: var(--accent); }
button[data-act=heal] { background: var(--ok); border-color: var(--ok); color: var(--on-accent); }
button:disabled { background: none; border-color: var(--line); color: var(--quiet); cursor: default; }
button:focus-visible, #rail:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: 17rem minmax(0, 1fr) 23rem; }
#rail { overflow-y: auto; padding: 1rem 1.25rem; border-right: 1px solid var(--line); }
ol { list-style: none; margin: 0; padding: 0; }
li { padding: 0 0 .7rem .9rem; border-left: 2px solid var(--line); overflow-wrap: anywhere; position: relative; }
li::before { content: ''; position: absolute; left: -5px; top: .5rem; width: 8px; height: 8px; border-radius: 50%; background: var(--accent); }
li time { display: block; color: var(--quiet); font-size: .8rem; font-variant-numeric: tabular-nums; }
iframe { border: 0; width: 100%; height: 100%; background: var(--ground); }
#phone { margin: 1rem; border: 8px solid var(--ink); border-radius: 32px; overflow: hidden; background: var(--paper); display: flex; flex-direction: column; min-height: 0; }
#alert { margin: .6rem .6rem 0; padding: .6rem .8rem; border-radius: 14px; background: var(--chosen); overflow-wrap: anywhere; }
#alert strong, #alert span { display: block; }
#alert span { font-size: .85rem; color: var(--quiet); }
#from { margin: 0; padding: .7rem 1rem; font-weight: 600; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
#from:empty { display: none; }
#none { margin: auto; color: var(--quiet); }
#mail { flex: 1; min-height: 0; background: #fff; }
#buttons { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; }
#looking { color: var(--quiet); }
#strip { margin: .5rem 0 0; display: flex; flex-wrap: wrap; gap: .3rem .7rem; align-items: center; color: var(--quiet); }
code { font: 13px/1.5 ui-monospace, monospace; color: var(--ink); background: var(--ground); border: 1px solid var(--line); border-radius: 6px; padding: .2rem .6rem; overflow-wrap: anywhere; user-select: all; }
@media (max-width: 70rem) { main { grid-template-columns: minmax(0, 1fr) 23rem; } #rail { display: none; } }
@media (max-width: 48rem) {
  body { height: auto; }
  header, footer { padding: .6rem 1rem; }
  footer { position: sticky; bottom: 0; }
  main { display: block; }
  button { min-height: 44px; }
  #rail { display: block; border: 0; max-height: 12rem; }
  #site { height: 70vh; }
  #phone { height: 36rem; }
  #strip { display: none; }
}
`
