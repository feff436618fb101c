/** Runs after a script that defines `page`: `status()`, `row(mail, badge)`, and, where wanted, `ended`, `views`, `shown`, `event` and `before`. */
export const MAILS_SCRIPT = `
const kept = JSON.parse(sessionStorage.getItem('mails') ?? '{}')
const rows = new Map(), values = {}, narrow = matchMedia('(max-width: 52rem)')
let mails = [], turn = 0, shownOf = '', copyable = '', isOver = false
let view = kept.view ?? 'html', width = kept.width ?? 600, scheme = kept.scheme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')
const remember = () => sessionStorage.setItem('mails', JSON.stringify({ view, width, scheme }))
/* The address of a mail is its fragment, so that it can be kept and the Back button leads to the list. */
const named = () => decodeURIComponent(location.hash.slice(1))
const isRead = () => named() !== '' || !narrow.matches
let chosen = named()
const address = (id, kind, extra = {}) => {
  const query = new URLSearchParams(extra)
  for (const [slot, value] of Object.entries(values[id] ?? {})) query.set('slot.' + slot, value)
  return '/mails/' + id + '.' + kind + '?' + query
}
const thumbnail = (mail) => address(mail.id, 'html', { scheme })
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })

/* A row is made once and stays, so that the keyboard focus does too. */
async function refresh(names) {
  mails = await json('/mails.json')
  const list = $('list')
  for (const [id, row] of rows) if (!mails.some((mail) => mail.id === id)) { row.remove(); rows.delete(id) }
  mails.forEach((mail, index) => { if (!rows.has(mail.id)) list.insertBefore(rowOf(mail), list.children[index] ?? null) })
  const before = chosen
  if (!mails.some((mail) => mail.id === chosen)) chosen = mails[0]?.id ?? ''
  draw(names)
  if (!names || chosen !== before) await show(false)
}

function rowOf(mail) {
  const label = element('span', { className: 'label' }, element('strong'), element('small'), element('span', { className: 'badge' }))
  const button = element('button', { id: 'mail-' + mail.id }, label)
  if ($('list').className) button.prepend(element('span', { className: 'thumb', ariaHidden: 'true' }, element('iframe', { title: '', tabIndex: -1, loading: 'lazy', src: thumbnail(mail) })))
  button.onclick = () => open(mail.id)
  const row = element('li', {}, button)
  rows.set(mail.id, row)
  return row
}

/* Fills the rows; thumbnails of the mails in \`names\` are loaded again. */
function draw(names = []) {
  const words = $('search').value.trim().toLowerCase()
  document.body.classList.toggle('reading', named() !== '')
  $('mail').hidden = mails.length === 0
  $('empty').hidden = mails.length > 0
  for (const mail of mails) {
    const row = rows.get(mail.id), button = row.firstChild
    row.hidden = !mail.words.toLowerCase().includes(words)
    button.setAttribute('aria-current', String(mail.id === chosen))
    row.querySelector('strong').textContent = mail.title
    row.querySelector('small').textContent = (mail.at ? day.format(new Date(mail.at)) + ' · ' : '') + mail.note
    page.row(mail, row.querySelector('.badge'))
    if (names.includes(mail.id)) for (const frame of row.querySelectorAll('iframe')) frame.src = thumbnail(mail)
  }
  const found = mails.filter((mail) => !rows.get(mail.id).hidden).length
  $('none').hidden = words === '' || found > 0
  $('status').textContent = isOver ? page.ended : words ? found + ' of ' + mails.length + ' found' : page.status()
}

function open(id) {
  if (id !== named()) history.pushState(null, '', id ? '#' + id : location.pathname)
  follow()
}

function follow() {
  page.before?.()
  const isKnown = mails.some((mail) => mail.id === named())
  if (isKnown) chosen = named()
  draw()
  if (isKnown) show(false)
}

async function show(isKept) {
  const mine = ++turn, id = chosen, mail = mails.find((one) => one.id === id)
  if (!mail) return
  const place = $('view').scrollTop, framed = view === 'html' || view === 'all'
  const [facts, frames] = await Promise.all([json(address(id, 'json')), framed ? load(id) : undefined])
  if (mine !== turn) { frames?.forEach(({ frame }) => frame.remove()); return }
  const isBroken = Boolean(facts.fault), own = page.views?.[view]
  /* The last good view of this mail stays. */
  const stays = isBroken && isKept && shownOf === id
  $('download').href = address(id, 'eml')
  $('fault').hidden = !isBroken
  $('fault').textContent = facts.fault ?? ''
  $('clip').hidden = isBroken
  $('view').setAttribute('aria-labelledby', 'tab-' + view)
  $('subject').textContent = isBroken ? id : facts.subject
  $('meta').textContent = isBroken ? '' : facts.about + (mail.at ? ' · ' + day.format(new Date(mail.at)) : '')
  copyable = ''
  if (isBroken) {
    $('sizes').textContent = stays && !own ? 'Shown as it was before the last change' : ''
    frames?.forEach(({ frame }) => frame.remove())
    if (!own && !stays) $('view').replaceChildren(element('p', { className: 'blank', textContent: mail.fault ? 'This mail does not compile, so there is nothing to show yet. Fix the template named above; this page follows when you save it.' : 'Correct the sample value named above, or go back to the samples.' }))
  } else {
    const share = Math.max(1, Math.round(facts.htmlBytes / facts.clipBytes * 100)) + ' % of where Gmail clips'
    $('sizes').textContent = (mail.title === facts.subject ? '' : mail.title + ' · ') + 'HTML ' + (facts.htmlBytes / 1024).toFixed(1) + ' KB, ' + share + ' · ' + (facts.totalBytes / 1024).toFixed(1) + ' KB on the wire'
    Object.assign($('clip'), { max: facts.clipBytes, value: facts.htmlBytes, title: share, ariaLabel: share })
    copyable = { html: facts.html, all: facts.html, text: facts.text, source: facts.source, headers: facts.headers.map(({ name, value }) => name + ': ' + value).join('\\n') }[view] ?? ''
    shownOf = id
    if (framed) settle(frames)
  }
  if (own) $('view').replaceChildren(own())
  else if (!framed && !isBroken) $('view').replaceChildren(VIEWS[view](facts))
  page.shown?.(mail, isKept)
  $('view').scrollTop = isKept ? place : 0
}

const VIEWS = {
  text: ({ text }) => element('pre', { textContent: text }),
  source: ({ source }) => element('pre', { textContent: source }),
  headers: ({ headers }) => element('dl', {}, ...headers.flatMap(({ name, value }) => [element('dt', { textContent: name }), element('dd', { textContent: value })])),
  parts({ html, attachments }) {
    const links = [...new DOMParser().parseFromString(html, 'text/html').links]
    const list = (items, none) => items.length === 0 ? element('p', { className: 'quiet', textContent: none }) : element('ul', {}, ...items)
    return element('div', { className: 'parts' },
      element('h3', { textContent: 'Links' }), list(links.map(({ href, textContent }) => element('li', {}, element('a', { href, textContent: href, target: '_blank', rel: 'noreferrer' }), ' ', textContent.trim())), 'It has no links.'),
      element('h3', { textContent: 'Attachments' }), list(attachments.map(({ name, type, bytes }) => element('li', { textContent: name + ', ' + type + ', ' + (bytes / 1024).toFixed(1) + ' KB' })), 'It has no attachments.'))
  },
}

/* New frames load out of sight and take the old ones' place when they are there: nothing flickers, and the place on the
   page is kept, because frames are as tall as their mail where they may be measured, and it is the page that scrolls. */
async function load(id) {
  const wanted = view === 'html' ? [[width, scheme]] : [[600, 'light'], [360, 'light'], [600, 'dark'], [360, 'dark']]
  return Promise.all(wanted.map(([wide, dark]) => new Promise((resolve) => {
    const frame = element('iframe', { className: 'next', title: 'HTML of ' + id + ', ' + (wide === 600 ? 'desktop' : 'phone') + ', ' + dark, src: address(id, 'html', { scheme: dark }) })
    frame.style.width = wide + 'px'
    if (dark === 'dark') frame.style.background = '#14161a'
    frame.onload = () => resolve({ frame, wide, dark, height: frame.contentDocument?.documentElement.scrollHeight })
    $('view').append(frame)
  })))
}

function settle(frames) {
  for (const { frame, height } of frames) { frame.style.height = height ? height + 'px' : view === 'all' ? '40rem' : ''; frame.onload = () => {} }
  if (view === 'html') {
    for (const child of [...$('view').children]) if (child !== frames[0].frame) child.remove()
    frames[0].frame.className = ''
    return
  }
  const four = element('div', { className: 'four' })
  for (const { wide, dark } of frames) four.append(element('figure', {}, element('figcaption', { textContent: (wide === 600 ? 'Desktop, ' : 'Phone, ') + dark }), element('div')))
  /* Moving a frame would load it again: the figures are made around the frames' places instead. */
  $('view').prepend(four)
  frames.forEach(({ frame }, index) => { const box = four.children[index].lastChild; box.moveBefore ? box.moveBefore(frame, null) : box.append(frame); frame.className = '' })
  for (const child of [...$('view').children]) if (child !== four) child.remove()
}

const tabs = all('[role=tab]')
function choose(tab) {
  view = tab.dataset.view
  remember()
  for (const one of tabs) { one.setAttribute('aria-selected', String(one === tab)); one.tabIndex = one === tab ? 0 : -1 }
  show(false)
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
const switches = all('#tools [role=group] button')
const pressed = () => press(switches, ({ dataset }) => dataset.width ? Number(dataset.width) === width : dataset.scheme === scheme)
for (const button of switches) button.onclick = () => {
  if (button.dataset.width) width = Number(button.dataset.width)
  else scheme = button.dataset.scheme
  remember()
  pressed()
  draw(button.dataset.scheme ? mails.map(({ id }) => id) : [])
  show(true)
}
$('search').oninput = () => draw()
$('copy').onclick = () => copyBy($('copy'), copyable || $('view').innerText)
onpopstate = follow
onkeydown = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.('input, select, textarea')) return
  if (event.key === '/') { event.preventDefault(); $('search').focus() }
  const step = { j: 1, k: -1 }[event.key]
  const found = mails.filter(({ id }) => !rows.get(id).hidden)
  const next = step && found[found.findIndex(({ id }) => id === chosen) + step]
  if (!next) return
  open(next.id)
  rows.get(next.id).firstChild.focus()
}
pressed()
choose(tabs.find((tab) => tab.dataset.view === view) ?? tabs[0])
const events = new EventSource('/events')
events.onmessage = ({ data }) => page.event ? page.event(data) : refresh([])
events.onopen = () => { isOver = false; refresh() }
events.onerror = () => { isOver = true; draw() }
`
