import { attempt } from '../core/is-record.ts'
import type { Messages } from '../core/messages/en.ts'
import { timesIn } from '../core/messages/words.ts'
import { morph } from './morph.ts'
import { pageData } from './page-data.ts'

// The script of the status pages: it refreshes them, writes times in the reader's zone, and shows what happened on each day.
const REFRESH_MS = 60_000
const PATIENCE_MS = 20_000
/** Another host gets a fresh page every few minutes. */
const KEPT_STALE_MS = 15 * 60_000
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
interface Data {
  readonly texts: Messages['status']['script']
  readonly language: string
  /** By another host than the platform's own, which may have stopped writing it. */
  readonly isKept: boolean
}
const { texts: T, language, isKept } = pageData<Data>()
const utc = timesIn(language)
// Where a browser does not know its zone, it names one that it does not take (`Etc/Unknown`).
const here = attempt(() => timesIn(language, Intl.DateTimeFormat().resolvedOptions().timeZone)) ?? utc

interface Days {
  readonly days: {
    readonly first: string
    readonly states: string
    readonly trouble: readonly { date: string; degradedSeconds: number; failingSeconds: number }[]
  }
}
interface Status {
  readonly services: readonly (Days & {
    readonly service: string
    readonly hours: readonly { start: string; p50: number; p95: number }[]
    readonly probes: Readonly<Record<string, Days>>
  })[]
  readonly incidents: readonly (Readonly<Record<'service' | 'probe' | 'title' | 'beganAt', string>> & {
    readonly endedAt: string | null
  })[]
}

const main = document.querySelector('main')
const menu = document.querySelector<HTMLDetailsElement>('.menu')
let status: Promise<Status> | undefined
let loadedAt = Date.now()
/** Folds that the reader opened or shut. */
const touched = new WeakSet<Element>()

async function refresh(): Promise<void> {
  try {
    const text = await ask(location.href, 'text/html')
    const fresh = new DOMParser().parseFromString(text, 'text/html')
    const next = fresh.querySelector('main')
    // A proxy in front can answer with a page of its own.
    if (!main || !next?.querySelector('#stale')) throw new Error('not the status page')
    equip(next)
    const focused = document.activeElement
    const pointed = shown
    hide()
    morph(main, next, (element) => touched.has(element))
    // An element that was moved has lost it.
    if (focused instanceof HTMLElement || focused instanceof SVGElement)
      focused.focus({ preventScroll: true })
    document.title = fresh.title
    const [icon, own] = [fresh, document].map((one) => one.querySelector<HTMLLinkElement>('link[rel=icon]'))
    if (icon && own) own.href = icon.href
    loadedAt = Date.now()
    status = undefined
    filter()
    tick()
    if (pointed) choose(pointed, Number(pointed.getAttribute('aria-valuenow')))
  } catch {
    say((Date.now() - loadedAt) / 1000)
  }
}

/** Says how old the page is. */
function say(seconds: number): void {
  const stale = document.querySelector<HTMLElement>('#stale')
  // A witness has its own words there.
  if (stale === null || stale.querySelector('strong')) return
  stale.textContent = T.stale.replace('{age}', length(seconds))
  stale.hidden = false
}

/** The text that the server answers. One that hangs counts as one that is down. */
async function ask(url: string, type: string): Promise<string> {
  const response = await fetch(url, { headers: { Accept: type }, signal: AbortSignal.timeout(PATIENCE_MS) })
  if (!response.ok) throw new Error(`status ${response.status}`)
  return response.text()
}

/** Writes times as the reader has them, and makes each row of days and hours answer to keys. */
function equip(root: ParentNode): void {
  for (const time of root.querySelectorAll('time')) {
    const [from, to] = [Date.parse(time.dateTime), Date.parse(time.dataset.to ?? '')]
    if (time.className !== 'ago')
      time.textContent = Number.isNaN(to) ? here.moment(from) : here.span(from, to)
    time.title = Number.isNaN(to) ? utc.moment(from) : utc.span(from, to)
  }
  for (const row of root.querySelectorAll('[data-line]')) {
    const [many, text] = row.matches('.hours') ? [24, T.hours] : [90, T.days]
    const label = text.replace('{name}', () => nameOf(row))
    setAll(row, { role: 'slider', tabindex: 0, 'aria-label': label })
    setAll(row, { 'aria-valuemin': 1, 'aria-valuemax': many, 'aria-valuenow': many })
  }
  for (const box of root.querySelectorAll<HTMLElement>('.filter')) box.hidden = false
}

function setAll(element: Element, attributes: Readonly<Record<string, string | number>>): void {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
}

function nameOf(row: Element): string {
  const service = row.closest('.service')?.querySelector('.head')?.firstElementChild?.textContent ?? ''
  const probe = row.closest('tr')?.querySelector('th span')?.textContent
  return probe ? `${probe} (${service})` : service
}

function tick(): void {
  const now = Date.now()
  for (const time of document.querySelectorAll<HTMLTimeElement>('time.ago')) {
    // The reader's clock may be wrong; another host cannot know the age.
    const age = isKept ? now - Date.parse(time.dateTime) : Number(time.dataset.age) + now - loadedAt
    const text = here.ago(age)
    if (time.textContent !== text) time.textContent = text
    if (isKept && time.closest('.verdict') && age > KEPT_STALE_MS) say(age / 1000)
  }
}

const tip = Object.assign(document.createElement('div'), { className: 'tip', hidden: true })
document.body.append(tip)
const mark = document.createElementNS('http://www.w3.org/2000/svg', 'rect')
mark.classList.add('mark')
let shown: Element | undefined
const WIDEST_TIP = 272

function hide(): void {
  tip.hidden = true
  mark.remove()
  if (shown?.matches('.hours')) caption(shown, undefined)
  shown = undefined
}

const legends = new WeakMap<Element, readonly (string | null)[]>()
/** What the legend of response times says, for one hour or else for the day. */
function caption(row: Element, texts: readonly string[] | undefined): void {
  const parts = [...(row.closest('figure')?.querySelectorAll('figcaption span') ?? [])]
  const legend = legends.get(row) ?? parts.map((part) => part.textContent)
  legends.set(row, legend)
  for (const [index, part] of parts.entries()) part.textContent = texts?.[index] ?? legend[index] ?? ''
}

/** Shows what is known of the day or hour with this number, from 1 on: above the row, beside its figure. */
async function choose(row: Element, number: number): Promise<void> {
  if (shown !== row) hide()
  const many = Number(row.getAttribute('aria-valuemax'))
  const chosen = String(Math.min(many, Math.max(1, number)))
  row.setAttribute('aria-valuenow', chosen)
  shown = row
  setAll(mark, { x: (Number(chosen) - 1) * 4 - 0.5, width: 4, y: 0, height: 40 })
  row.append(mark)
  const write = (texts: readonly string[]) => {
    if (shown !== row || row.getAttribute('aria-valuenow') !== chosen) return
    row.setAttribute('aria-valuetext', texts.join('. '))
    if (row.matches('.hours')) return caption(row, texts)
    const box = row.getBoundingClientRect()
    const figure = row.closest('tr, header, details')?.querySelector('.num, .up')?.getBoundingClientRect()
    const end = Math.min(figure && figure.top < box.bottom ? figure.left : innerWidth, innerWidth) - 8
    tip.textContent = texts.join('. ')
    tip.style.maxWidth = `${Math.min(WIDEST_TIP, end - 8)}px`
    tip.hidden = false
    const middle = box.left + ((Number(chosen) - 0.5) / many) * box.width - tip.offsetWidth / 2
    const left = Math.max(8, Math.min(middle, end - tip.offsetWidth))
    tip.style.left = `${left + scrollX}px`
    tip.style.top = `${box.top + scrollY - tip.offsetHeight - 6}px`
  }
  if (status === undefined) {
    write([T.reading])
    // Our own answer, in the form that this script expects.
    status = ask('status.json', 'application/json').then((text) => JSON.parse(text) as Status)
    status.catch(() => {
      status = undefined
    })
  }
  write(await status.then((read) => describe(read, row, Number(chosen))).catch(() => [T.unread]))
}

function describe({ services, incidents }: Status, row: Element, number: number): readonly string[] {
  const [service, probe = ''] = row.getAttribute('data-line')?.split('/') ?? []
  const of = services.find((one) => one.service === service)
  if (row.matches('.hours')) {
    const start = Number(row.getAttribute('data-first')) + (number - 1) * HOUR_MS
    const hour = of?.hours.find((one) => Date.parse(one.start) === start)
    const within = (text: string, ms: number | undefined) =>
      ms === undefined ? T.none : text.replace('{time}', latency(ms))
    return [here.span(start, start + HOUR_MS), within(T.half, hour?.p50), within(T.most, hour?.p95)]
  }
  const days = (probe === '' ? of : of?.probes[probe])?.days
  if (days === undefined) return [T.unread]
  const start = Date.parse(days.first) + (number - 1) * DAY_MS
  const trouble = days.trouble.find((one) => Date.parse(one.date) === start)
  const state = days.states[number - 1]
  const lasted = [
    trouble?.failingSeconds ? T.failing.replace('{time}', length(trouble.failingSeconds)) : '',
    trouble?.degradedSeconds ? T.degraded.replace('{time}', length(trouble.degradedSeconds)) : '',
  ].filter(Boolean)
  // A check can find trouble without adding any time, so the day's state decides.
  const brief =
    { o: T.ok, '-': T.none }[state ?? ''] ??
    T[state === 'f' ? 'failing' : 'degraded'].replace('{time}', '< 1 min')
  const happened = incidents.flatMap((one) => {
    const [began, ended] = [Date.parse(one.beganAt), Date.parse(one.endedAt ?? '')]
    const isHere = one.service === service && (probe === '' || one.probe === probe)
    return isHere && began < start + DAY_MS && !(ended <= start) ? [one.title] : []
  })
  return [`${utc.day(start)}: ${lasted.join(', ') || brief}`, ...happened]
}

const latency = (ms: number) =>
  ms >= 10_000 ? `${Math.round(ms / 1000)} s` : `${ms < 10 ? ms.toLocaleString(language) : Math.round(ms)} ms`

/** `2 h 10 min`, in units that need no translation. */
function length(seconds: number): string {
  const minutes = Math.round(seconds / 60)
  if (minutes < 1) return `${Math.max(1, Math.round(seconds))} s`
  if (minutes < 60) return `${minutes} min`
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Hides the services that do not have the words that were typed. */
function filter(): void {
  const words = document.querySelector<HTMLInputElement>('#filter')
  const trouble = document.querySelector<HTMLInputElement>('#trouble')
  const found = document.querySelector('#found')
  if (!words || !trouble || !found) return
  const wanted = words.value.trim().toLowerCase()
  const all = document.querySelectorAll<HTMLElement>('.group .service')
  let count = 0
  for (const one of all) {
    const group = one.closest('.group')?.querySelector('h3')?.firstChild?.textContent ?? ''
    const text = `${group} ${one.querySelector('.head')?.firstElementChild?.textContent}`.toLowerCase()
    one.hidden = !text.includes(wanted) || (trouble.checked && one.dataset.trouble === undefined)
    if (!one.hidden) count += 1
  }
  for (const group of document.querySelectorAll<HTMLElement>('.group'))
    group.hidden = group.querySelector('.service:not([hidden])') === null
  found.textContent = T.found.replace('{count}', String(count)).replace('{all}', String(all.length))
}

const rowOf = ({ target }: Event) => (target instanceof Element ? target.closest('[data-line]') : null)

function point(event: PointerEvent): void {
  const row = rowOf(event)
  if (row === null) {
    if (event.pointerType === 'mouse' && shown && !shown.matches(':focus-visible')) hide()
    return
  }
  const box = row.getBoundingClientRect()
  const many = Number(row.getAttribute('aria-valuemax'))
  choose(row, Math.floor(((event.clientX - box.left) / box.width) * many) + 1)
}
document.addEventListener('pointermove', point)
document.addEventListener('pointerdown', (event) => {
  point(event)
  if (event.target instanceof Node && !menu?.contains(event.target)) menu?.removeAttribute('open')
})
document.addEventListener('focusin', (event) => {
  const row = rowOf(event)
  if (row?.matches(':focus-visible')) choose(row, Number(row.getAttribute('aria-valuenow')))
})
document.addEventListener('focusout', hide)
document.addEventListener('keydown', (event) => {
  const row = rowOf(event)
  if (event.key === 'Escape') {
    hide()
    if (menu?.open) menu.querySelector('summary')?.focus()
    menu?.removeAttribute('open')
  }
  if (row === null) return
  const now = Number(row.getAttribute('aria-valuenow'))
  const end = Number(row.getAttribute('aria-valuemax'))
  const steps = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now + 7, PageDown: now - 7 }
  const to = { ...steps, Home: 1, End: end }[event.key]
  // With one of these keys it is a command of the browser, as Back is.
  if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return
  event.preventDefault()
  choose(row, to)
})
document.addEventListener('click', ({ target }) => {
  const fold = target instanceof Element ? target.closest('summary')?.parentElement : null
  if (fold) touched.add(fold)
})
document.addEventListener('input', filter)

if (main) equip(document)
filter()
tick()
setInterval(tick, 1000)
setInterval(() => {
  if (document.visibilityState === 'visible') refresh()
}, REFRESH_MS)
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible' && Date.now() - loadedAt > REFRESH_MS) refresh()
})
