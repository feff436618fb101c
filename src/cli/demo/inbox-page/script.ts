/** Runs in the page: plain JavaScript, because the inbox is served without a build. `T` holds the texts. */
export const SCRIPT = `
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
