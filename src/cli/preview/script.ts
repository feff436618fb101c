import { LAYOUT } from '../../core/mail/compile/files.ts'

export const PREVIEW_SCRIPT = `
const findings = {}
/* What is found in the layout is in every mail, and is counted once, in the head. */
const isOwn = ({ location }) => location.file !== '${LAYOUT}'
let saidSaved = ' · watching the folder', filledFor = '', saves = 0, isChecking = false
const token = () => ({ 'X-Preview-Token': sessionStorage.getItem('token') ?? '' })
const post = (url, body) => fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json', ...token() }, body: JSON.stringify(body) })
const page = {
  ended: 'The preview has ended',
  /* The key of the printed address is exchanged once for the right to send, in this tab. */
  before() {
    const [, id, key] = /^#?(.*?)(?:&?key=([\\w-]+))?$/.exec(location.hash)
    if (!key) return
    history.replaceState(null, '', '#' + id)
    post('/session', { key }).then(async (answer) => { if (answer.ok) sessionStorage.setItem('token', (await answer.json()).token) })
  },
  status() {
    const broken = mails.filter((mail) => mail.fault).length
    const inLayout = new Set(Object.values(findings).flat().filter((one) => !isOwn(one)).map((one) => JSON.stringify(one))).size
    return mails.length + ' mails' + (broken ? ', ' + broken + ' broken' : '') + (inLayout ? ' · ' + plural(inLayout, 'finding') + ' in the layout' : '') + saidSaved
  },
  row({ id, fault }, badge) {
    const of = (severity) => plural(findings[id]?.filter((finding) => isOwn(finding) && finding.severity === severity).length ?? 0, severity)
    const [errors, warnings, notices] = ['error', 'warning', 'notice'].map(of)
    const is = (count) => !count.startsWith('0')
    badge.className = 'badge ' + (is(errors) ? 'error' : is(warnings) ? 'warning' : 'good')
    badge.textContent = !findings[id] ? '' : is(errors) ? '✖ ' + errors : is(warnings) ? '▲ ' + warnings : '✔ clean' + (is(notices) ? ', ' + notices : '')
  },
  /* The mail that is looked at comes first; the gallery and the findings follow. */
  async event(data) {
    const names = JSON.parse(data)
    saves += 1
    for (const name of names) delete findings[name]
    if (names.includes(chosen)) await show(true)
    saidSaved = ' · ' + (names.length > 3 ? plural(names.length, 'mail') : names.join(', ')) + ' saved'
    await refresh(names)
    check()
  },
  shown(mail, isKept) {
    $('count').textContent = findings[mail.id]?.filter(isOwn).length || ''
    if (!isKept || filledFor !== mail.id) fillSlots(mail)
    check()
  },
  views: { findings: findingsView, clients: clientsView },
}
page.before()

async function check() {
  if (isChecking) return
  isChecking = true
  const isUnknown = ({ id }) => !findings[id]
  for (let mail; (mail = mails.find((one) => one.id === chosen && isUnknown(one)) ?? mails.find(isUnknown)); ) {
    const asked = saves, found = await json('/mails/' + mail.id + '.findings')
    if (asked !== saves) continue
    findings[mail.id] = found
    draw()
    if (mail.id !== chosen) continue
    $('count').textContent = findings[mail.id].filter(isOwn).length || ''
    if (view === 'findings') $('view').replaceChildren(findingsView())
  }
  isChecking = false
}

/* Addresses in a sentence become links; everything else stays text. */
const outside = (href, textContent) => element('a', { href, textContent, target: '_blank', rel: 'noreferrer' })
const linked = (text) => text.split(/(https:\\/\\/[^\\s<>]*[^\\s<>.,;)])/).map((part, index) => index % 2 ? outside(part, part) : part)

function findingsView() {
  const list = findings[chosen]
  if (!list) return element('p', { className: 'blank', textContent: 'Checking …' })
  if (list.length === 0) return element('p', { className: 'blank good', textContent: '✔ Nothing found: links, contrast, size, clients, plain text and structure are in order.' })
  const [own, layout] = [list.filter(isOwn), list.filter((one) => !isOwn(one))].map((some) => some.map(({ id, severity, cause, fix, location }) => element('div', { className: 'finding ' + severity },
    element('strong', { textContent: severity[0].toUpperCase() + severity.slice(1) }), ' ', element('code', { textContent: id + ' · ' + location.file + ':' + location.line + ':' + location.column }),
    element('p', {}, ...linked(cause)), element('p', {}, ...linked(fix)), element('p', {}, outside('/findings#' + id, 'What ' + id + ' means')))))
  return element('div', { className: 'findings' }, ...own, ...(layout.length ? [element('h3', { textContent: 'In the layout, and so in every mail' })] : []), ...layout)
}

function clientsView() {
  const table = element('dl', { textContent: 'Checking …' })
  json('/mails/' + chosen + '.clients').then((clients) => table.replaceChildren(...clients.flatMap(({ client, missing, partial }) => [element('dt', { textContent: client }),
    element('dd', { textContent: [missing.length ? 'without ' + missing.join(', ') : '', partial.length ? 'partly ' + partial.join(', ') : ''].filter(Boolean).join('; ') || '✔ everything' })])), () => { table.textContent = 'The mail does not compile.' })
  return element('div', {}, element('p', { className: 'parts', textContent: 'What each client shows the mail without. What MJML writes has a fallback there; Findings name what you wrote.' }), table)
}

/* The sample values stand beside the mail, so that it changes while one types. */
function fillSlots({ id, slots, samples = {} }) {
  filledFor = id
  $('slots').hidden = Object.keys(slots).length === 0
  let later
  const changed = () => { clearTimeout(later); later = setTimeout(() => { draw([id]); show(true) }, 120) }
  const form = $('slots').querySelector('form')
  const fill = (given) => { values[id] = given; fillSlots({ id, slots, samples }); changed() }
  const kinds = Object.entries(samples).map(([kind, given]) => element('button', { type: 'button', textContent: kind, onclick: () => fill(given) }))
  form.replaceChildren(...kinds, ...Object.entries(slots).map(([slot, { type, sample }]) => {
    const input = element('input', { value: values[id]?.[slot] ?? sample, type: 'text', spellcheck: false })
    input.oninput = () => { values[id] = { ...values[id], [slot]: input.value }; changed() }
    return element('label', {}, element('span', {}, slot + ' ', element('small', { textContent: type === 'url' ? 'an http or https address' : 'one line of text' })), input)
  }), element('button', { type: 'button', textContent: 'Back to the samples', onclick: () => fill({}) }))
}
$('slots').querySelector('form').onsubmit = (event) => event.preventDefault()
$('slots').open = !matchMedia('(max-width: 64rem)').matches

$('send').onclick = async () => {
  const answer = await fetch('/sender.json', { headers: token() })
  const { missing, recipients } = answer.ok ? await answer.json() : { missing: await answer.text() + '.' }
  $('said').textContent = missing ?? ''
  if (missing) return
  $('to').replaceChildren(...recipients.map((value) => element('option', { value, textContent: value })))
  $('sender').hidden = !$('sender').hidden
  $('send').setAttribute('aria-expanded', String(!$('sender').hidden))
  if (!$('sender').hidden) $('to').focus()
}
$('sender').onsubmit = async (event) => {
  event.preventDefault()
  const to = $('to').value, button = $('sender').querySelector('button')
  button.disabled = true
  $('said').textContent = 'Sending …'
  try {
    const response = await post(address(chosen, 'send'), { to })
    const result = response.ok ? await response.json() : { reason: await response.text() }
    $('said').textContent = result.sent ? 'Sent to ' + to : 'Not sent: ' + result.reason + '.'
  } catch { $('said').textContent = page.ended }
  button.disabled = false
}
`
