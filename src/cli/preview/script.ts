/** Runs in the page: plain JavaScript, because the preview is served without a build. */
export const SCRIPT = `
const $ = (id) => document.getElementById(id)
const kept = JSON.parse(sessionStorage.getItem('preview') ?? '{}')
let shownOf = '', copyable
let mails = [], chosen = named(), turn = 0
let view = kept.view ?? 'html', width = kept.width ?? 600, scheme = kept.scheme ?? 'light'
const values = {}, findings = {}
const remember = () => sessionStorage.setItem('preview', JSON.stringify({ view, width, scheme }))
const address = (name, kind, extra = {}) => {
  const query = new URLSearchParams(extra)
  for (const [slot, value] of Object.entries(values[name] ?? {})) query.set('slot.' + slot, value)
  return '/mails/' + name + '.' + kind + '?' + query
}
const json = async (url) => (await fetch(url)).json()
const element = (tag, parts = {}, ...children) => { const made = Object.assign(document.createElement(tag), parts); made.append(...children); return made }
const fill = (text, parts) => text.replace(/\\{(\\w+)\\}/g, (_, name) => parts[name])
const plural = (count, noun) => count + ' ' + noun + (count === 1 ? '' : 's')

/* The mail that the fragment names. Its key, if it has one, is exchanged once for the right to send, in this tab. */
function named() {
  const [, mail, key] = /^#?(.*?)(?:&?key=([\\w-]+))?$/.exec(location.hash)
  if (key) {
    history.replaceState(null, '', '#' + mail)
    post('/session', { key }).then(async (answer) => { if (answer.ok) sessionStorage.setItem('token', (await answer.json()).token) })
  }
  return mail
}
function token() { return { 'X-Preview-Token': sessionStorage.getItem('token') ?? '' } }
function post(url, body) { return fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json', ...token() }, body: JSON.stringify(body) }) }

/* The mail that is looked at comes first; the gallery and the findings follow. */
async function saved(names) {
  const started = performance.now()
  for (const name of names) delete findings[name]
  if (names.includes(chosen)) {
    await show(true)
    document.body.dataset.reloadMs = Math.round(performance.now() - started)
  }
  await refresh(names)
}

async function refresh(names) {
  mails = await json('/mails.json')
  if (!mails.some((mail) => mail.name === chosen)) chosen = mails[0].name
  const broken = mails.filter((mail) => mail.fault).length
  const shown = names && (names.length > 3 ? plural(names.length, 'mail') : names.join(', '))
  $('status').textContent = mails.length + ' mails' + (broken ? ', ' + broken + ' broken' : '') + (shown ? ' · ' + shown + ' saved' : ' · watching the folder')
  gallery(names)
  if (!names) await show(false)
  for (const { name } of mails) if (!findings[name]) { findings[name] = await json(address(name, 'findings')); badge(name) }
}

function gallery(names) {
  if ($('gallery').children.length !== mails.length) {
    $('gallery').replaceChildren(...mails.map((mail) => {
      const frame = element('iframe', { title: '', tabIndex: -1, loading: 'lazy', src: address(mail.name, 'html', { scheme }) })
      const button = element('button', { id: 'mail-' + mail.name }, element('span', { className: 'thumb', ariaHidden: 'true' }, frame), element('span', { className: 'label' }, mail.name, element('small'), element('span', { className: 'badge' })))
      button.onclick = () => { chosen = mail.name; history.replaceState(null, '', '#' + chosen); gallery([]); show(false) }
      return element('li', {}, button)
    }))
    $('mail-' + chosen).scrollIntoView({ block: 'nearest' })
    names = []
  }
  const words = $('filter').value.trim().toLowerCase()
  let found = 0
  for (const mail of mails) {
    const button = $('mail-' + mail.name)
    const matches = (mail.name + ' ' + mail.subject).toLowerCase().includes(words)
    if (matches) found += 1
    button.parentElement.hidden = !matches
    button.setAttribute('aria-current', String(mail.name === chosen))
    button.querySelector('small').textContent = mail.fault ? T.broken : mail.subject
    if (!names || names.includes(mail.name)) button.querySelector('iframe').src = address(mail.name, 'html', { scheme })
  }
  $('nomatch').hidden = found > 0
}

function badge(name) {
  const of = (severity) => findings[name].filter((finding) => finding.severity === severity).length
  const [errors, warnings, notices] = [of('error'), of('warning'), of('notice')]
  const mark = $('mail-' + name).querySelector('.badge')
  mark.className = 'badge ' + (errors ? 'error' : warnings ? 'warning' : 'good')
  mark.textContent = errors ? '✖ ' + plural(errors, 'error') : warnings ? '▲ ' + plural(warnings, 'warning') : T.cleanMark + (notices ? ', ' + plural(notices, 'notice') : '')
  if (name !== chosen) return
  $('count').textContent = findings[name].length || ''
  if (view === 'findings') $('view').replaceChildren(findingsView())
}

async function show(keep) {
  const mine = ++turn
  const name = chosen
  const place = $('view').scrollTop
  const framed = view === 'html' || view === 'all'
  const [facts, frames] = await Promise.all([json(address(name, 'json')), framed ? load(name) : undefined])
  if (mine !== turn) { frames?.forEach(({ frame }) => frame.remove()); return }
  $('download').href = address(name, 'eml')
  $('fault').hidden = !facts.fault
  copyable = undefined
  $('fault').textContent = facts.fault ?? ''
  $('clip').hidden = Boolean(facts.fault)
  $('view').setAttribute('aria-labelledby', 'tab-' + view)
  $('count').textContent = findings[name]?.length || ''
  if (facts.fault) {
    $('subject').textContent = name
    frames?.forEach(({ frame }) => frame.remove())
    const compiles = !mails.find((mail) => mail.name === name)?.fault
    /* Keep the last good view of this mail; if there is none, say so. */
    const stays = keep && shownOf === name
    $('sizes').textContent = stays && view !== 'slots' && view !== 'findings' ? T.stale : ''
    $('preheader').textContent = ''
    if (view === 'slots') { if (!keep) $('view').replaceChildren(slotsView(name)) }
    else if (view !== 'findings' && !stays) $('view').replaceChildren(element('p', { className: 'blank', textContent: compiles ? T.invalidEmpty : T.brokenEmpty }))
    if (view !== 'findings') return
  } else {
    $('subject').textContent = facts.subject
    $('preheader').textContent = facts.preheader ? fill(T.preheader, { text: facts.preheader }) : ''
    shownOf = name
    copyable = { html: facts.html, all: facts.html, text: facts.text, source: facts.source, headers: facts.headers.join('\\n') }[view]
    const share = Math.max(1, Math.round(facts.htmlBytes / facts.clipBytes * 100))
    $('sizes').textContent = name + ' · HTML ' + (facts.htmlBytes / 1024).toFixed(1) + ' KB, ' + share + ' % of where Gmail clips · ' + (facts.totalBytes / 1024).toFixed(1) + ' KB on the wire'
    Object.assign($('clip'), { max: facts.clipBytes, value: facts.htmlBytes, title: share + ' % of where Gmail clips', ariaLabel: share + ' % of where Gmail clips' })
  }
  if (framed) settle(frames)
  else if (view === 'slots') { if (!keep) $('view').replaceChildren(slotsView(name)) }
  else if (view === 'findings') $('view').replaceChildren(findingsView())
  else if (view === 'headers') $('view').replaceChildren(element('dl', {}, ...facts.headers.flatMap((line) => { const colon = line.indexOf(':'); return [element('dt', { textContent: line.slice(0, colon) }), element('dd', { textContent: line.slice(colon + 1).trim() })] })))
  else $('view').replaceChildren(element('pre', { textContent: view === 'text' ? facts.text : facts.source }))
  $('view').scrollTop = keep ? place : 0
}

/* New frames load out of sight and take the old ones' place when they are there: nothing flickers, and the place on the
   page is kept, because frames are as tall as their mail and it is the page that scrolls. */
async function load(name) {
  const wanted = view === 'html' ? [[width, scheme]] : [[600, 'light'], [360, 'light'], [600, 'dark'], [360, 'dark']]
  return Promise.all(wanted.map(([wide, dark]) => new Promise((resolve) => {
    const frame = element('iframe', { className: 'next', title: 'HTML of ' + name + ', ' + (wide === 600 ? 'desktop' : 'phone') + ', ' + dark, src: address(name, 'html', { scheme: dark }) })
    frame.style.width = wide + 'px'
    frame.onload = () => resolve({ frame, wide, dark, height: frame.contentDocument.documentElement.scrollHeight })
    $('view').append(frame)
  })))
}

function settle(frames) {
  for (const { frame, height } of frames) { frame.style.height = height + 'px'; frame.onload = () => {} }
  if (view === 'html') {
    for (const child of [...$('view').children]) if (child !== frames[0].frame) child.remove()
    frames[0].frame.className = ''
    return
  }
  const old = $('view').querySelector('.four')
  const four = element('div', { className: 'four' })
  for (const { wide, dark } of frames) four.append(element('figure', {}, element('figcaption', { textContent: (wide === 600 ? T.wide : T.narrow) + ', ' + T[dark].toLowerCase() }), element('div')))
  /* Moving a frame would load it again: the figures are made around the frames' places instead. */
  $('view').prepend(four)
  frames.forEach(({ frame }, index) => { const box = four.children[index].lastChild; box.moveBefore ? box.moveBefore(frame, null) : box.append(frame); frame.className = '' })
  old?.remove()
  for (const child of [...$('view').children]) if (child !== four) child.remove()
}

/* Addresses in a sentence become links; everything else stays text. */
function linked(text) {
  return text.split(/(https:\\/\\/[^\\s<>]*[^\\s<>.,;)])/).map((part, index) => index % 2 ? element('a', { href: part, textContent: part, target: '_blank', rel: 'noreferrer' }) : part)
}

function findingsView() {
  const list = findings[chosen]
  if (!list) return element('p', { className: 'notice none', textContent: T.checking })
  if (list.length === 0) return element('p', { className: 'none', textContent: '✔ ' + T.clean })
  return element('div', { className: 'findings' }, ...list.map(({ id, severity, cause, fix, location }) => element('div', { className: 'finding ' + severity },
    element('strong', { textContent: T[severity] }), ' ', element('code', { textContent: id + ' · ' + location.file + ':' + location.line + ':' + location.column }),
    element('p', {}, ...linked(cause)), element('p', {}, ...linked(fix)), element('p', {}, element('a', { href: '/findings#' + id, target: '_blank', rel: 'noreferrer', textContent: fill(T.more, { id }) })))))
}

function slotsView(name) {
  const mail = mails.find((one) => one.name === name)
  const form = element('form')
  form.onsubmit = (event) => event.preventDefault()
  let later
  const changed = () => { clearTimeout(later); later = setTimeout(() => { gallery([name]); show(true) }, 120) }
  for (const [slot, { type, sample }] of Object.entries(mail.slots)) {
    const input = element('input', { value: values[name]?.[slot] ?? sample, type: 'text', spellcheck: false })
    input.oninput = () => { values[name] = { ...values[name], [slot]: input.value }; changed() }
    form.append(element('label', {}, element('span', {}, slot + ' ', element('small', { textContent: type === 'url' ? T.url : T.line })), input))
  }
  const reset = element('button', { type: 'button', textContent: T.reset })
  reset.onclick = () => { delete values[name]; gallery([name]); $('view').replaceChildren(slotsView(name)); show(true) }
  form.append(reset)
  return form
}

const tabs = [...document.querySelectorAll('[role=tab]')]
function choose(tab) {
  view = tab.dataset.view
  remember()
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
const press = () => {
  for (const button of document.querySelectorAll('.switches button')) button.setAttribute('aria-pressed', String(button.dataset.width ? Number(button.dataset.width) === width : button.dataset.scheme === scheme))
}
for (const button of document.querySelectorAll('.switches button')) {
  button.onclick = () => {
    if (button.dataset.width) width = Number(button.dataset.width)
    else scheme = button.dataset.scheme
    remember()
    press()
    if (button.dataset.scheme) gallery()
    show(true)
  }
}
$('filter').oninput = () => gallery([])
const copy = async (text) => {
  await navigator.clipboard.writeText(text)
  $('said').textContent = T.copied
  setTimeout(() => { $('said').textContent = '' }, 2000)
}
$('copy').onclick = () => copy(copyable ?? $('view').innerText)
$('send').onclick = async () => {
  const answer = await fetch('/sender.json', { headers: token() })
  const { missing, recipients } = answer.ok ? await answer.json() : { missing: await answer.text() + '.' }
  if (missing) { $('said').textContent = missing; return }
  $('to').replaceChildren(...recipients.map((value) => element('option', { value, textContent: value })))
  $('sender').hidden = !$('sender').hidden
  $('send').setAttribute('aria-expanded', String(!$('sender').hidden))
  if (!$('sender').hidden) $('to').focus()
}
$('sender').onsubmit = async (event) => {
  event.preventDefault()
  const to = $('to').value, button = $('sender').querySelector('button')
  button.disabled = true
  $('said').textContent = T.sending
  try {
    const response = await post(address(chosen, 'send'), { to })
    const result = response.ok ? await response.json() : { reason: await response.text() }
    $('said').textContent = result.sent ? fill(T.sent, { to }) : fill(T.notSent, { reason: result.reason })
  } catch { $('said').textContent = T.ended }
  button.disabled = false
}
press()
choose(tabs.find((tab) => tab.dataset.view === view) ?? tabs[0])
refresh()
onhashchange = () => { const name = named(); if (mails.some((mail) => mail.name === name)) { chosen = name; gallery([]); show(false) } }
const events = new EventSource('/events')
events.onmessage = (event) => saved(JSON.parse(event.data))
events.onerror = () => { $('status').textContent = T.ended }
`
