import { pageOf } from '../pages/site.ts'

const BUTTONS = {
  mail: 'Break mail',
  service: 'Stop {service}',
  store: 'Hang the store',
  announce: 'Announce maintenance',
  bounce: 'Post a bounce',
  heal: 'Heal',
} as const

const TABS = { live: 'Status', inbox: 'Inbox', lessons: 'Lessons', insights: 'Insights' } as const

export const HERE = 'http://127.0.0.1:* http://localhost:*'

export function livePage(): Response {
  return pageOf({
    title: 'Your platform, this week',
    style: STYLE,
    script: `const BUTTONS = ${JSON.stringify(BUTTONS)}\n${SCRIPT}`,
    frames: HERE,
    body: `<header>
  <h1><span id="name"></span>Your platform, this week</h1>
  <nav aria-label="Pages of the platform">${Object.entries(TABS)
    .map(([tab, text]) => `<button data-tab="${tab}" aria-pressed="${tab === 'live'}">${text}</button>`)
    .join('')}</nav>
</header>
<main>
  <section id="rail" aria-labelledby="story-head" tabindex="0"><h2 id="story-head">What happened</h2><ol id="story" aria-live="polite"><li>Starting …</li></ol></section>
  <iframe id="site" title="Status"></iframe>
  <section id="phone" aria-label="Newest mail, as on a phone">
    <div id="alert" role="status" hidden><strong></strong><span></span></div>
    <p id="from"></p>
    <iframe id="mail" title="Newest mail, as on a phone" hidden></iframe>
    <p id="none">Mails land here.</p>
  </section>
</main>
<footer>
  <div id="buttons" role="group" aria-label="Break it">${Object.entries(BUTTONS)
    .map(
      ([name, text]) =>
        `<button data-act="${name}" disabled>${text.replace('{service}', 'a service')}</button>`,
    )
    .join('')}<span id="looking" role="status"></span></div>
  <p id="strip"><span>The same in a terminal:</span> <code id="command"></code> <button id="copy">Copy</button></p>
</footer>`,
  })
}

/** Runs in the page: plain JavaScript, because the page is served without a build. */
const SCRIPT = `
let state = { story: [], alerts: [], broken: [], can: [] }, tab = 'live', told = 0, shownMail = 0

const SITES = { live: '/', lessons: '/lessons/1', insights: '/insights' }
function showSite() {
  if (!state.site) return
  /* Set again, it loads again: the verdict of now. */
  $('site').src = tab === 'inbox' ? '/inbox' : state.site + SITES[tab]
  $('site').title = all('[data-tab=' + tab + ']')[0].textContent
}

function draw() {
  $('name').textContent = state.name ? state.name + ': ' : ''
  while (told < state.story.length) {
    if (told === 0) $('story').replaceChildren()
    const { at, text } = state.story[told]
    const time = element('time', { dateTime: at, textContent: day.format(new Date(at)) })
    $('story').append(element('li', {}, time, ' ', text))
    $('rail').scrollTop = $('rail').scrollHeight
    told += 1
  }
  for (const button of all('[data-act]')) {
    const { act } = button.dataset
    const isFault = ['mail', 'service', 'store'].includes(act)
    button.hidden = isFault && !state.can.includes(act)
    const isHung = !isFault && state.broken.includes('store')
    button.disabled = !state.site || (act === 'heal' ? state.broken.length === 0 : isHung || state.broken.includes(act))
    button.textContent = BUTTONS[act].replace('{service}', state.service)
  }
  const alert = state.alerts.at(-1)
  $('alert').hidden = !alert
  if (alert) {
    $('alert').firstChild.textContent = alert.title
    $('alert').lastChild.textContent = alert.text.split('\\n')[0]
  }
  $('looking').textContent = state.isLooking ? 'The daemon is looking …' : ''
  $('command').textContent = state.command
}
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', hour: '2-digit', minute: '2-digit' })

async function refresh() {
  const [live, mails] = await Promise.all(['/live.json', '/mails.json'].map((path) => json(path)))
  const isNew = live.site !== state.site
  const hasMoved = live.version !== state.version
  /* The oldest lines are dropped in a long demo. */
  if (live.story.length <= told && live.story.at(-1)?.at !== state.story.at(-1)?.at) { told = 0 }
  state = live
  draw()
  if (isNew || (hasMoved && tab === 'live')) showSite()
  const [mail] = mails
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
  press(all('[data-tab]'), (one) => one === button)
  showSite()
}
for (const button of all('[data-act]')) button.onclick = () => {
  button.disabled = true
  fetch('/act/' + button.dataset.act, { method: 'POST', headers: { 'X-Live': '1' } }).then(refresh)
}
$('copy').onclick = () => copyBy($('copy'), state.command)
const events = new EventSource('/events')
/* Several events in a row are one look. */
let due
events.onmessage = () => { clearTimeout(due); due = setTimeout(refresh, 100) }
events.onopen = refresh
events.onerror = () => { $('looking').textContent = 'The demo has ended. Start it again with npm start.'; for (const button of all('[data-act]')) button.disabled = true }
`

const STYLE = `
body { height: 100vh; display: flex; flex-direction: column; }
footer { padding: .6rem 1.25rem; background: var(--paper); border-top: 1px solid var(--line); }
h2 { font-size: .85rem; margin: 0 0 .6rem; color: var(--quiet); font-weight: 600; }
nav { display: flex; flex-wrap: wrap; gap: .25rem; }
button[data-act] { font-weight: 600; border-color: var(--bad); color: var(--bad); }
button[data-act=announce], button[data-act=bounce] { border-color: var(--accent); color: var(--accent); }
button[data-act=heal] { background: var(--good); border-color: var(--good); color: var(--on-accent); }
button:disabled { background: none; border-color: var(--line); color: var(--quiet); cursor: default; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: 17rem minmax(0, 1fr) 23rem; }
#rail { overflow-y: auto; padding: 1rem 1.25rem; border-right: 1px solid var(--line); }
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
code { color: var(--ink); background: var(--ground); border: 1px solid var(--line); border-radius: 6px; padding: .2rem .6rem; user-select: all; }
@media (max-width: 70rem) { main { grid-template-columns: minmax(0, 1fr) 23rem; } #rail { display: none; } }
@media (max-width: 48rem) {
  body { height: auto; }
  header, footer { padding: .6rem 1rem; }
  footer { position: sticky; bottom: 0; }
  main { display: block; }
  #rail { display: block; border: 0; max-height: 12rem; }
  #site { height: 70vh; }
  #phone { height: 36rem; }
  #strip { display: none; }
}
`
