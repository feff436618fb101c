import type { Messages } from '../core/messages/en.ts'
import { pageData } from './page-data.ts'

/** The script of the status page: it refreshes the page, marks it as outdated, and shows what happened on each day. */
const REFRESH_MS = 60_000
const PATIENCE_MS = 20_000
const DAYS = 90
const T = pageData<Messages['status']['script']>()

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
    readonly probes: Readonly<Record<string, Days>>
  })[]
  readonly incidents: readonly { service: string; probe: string; beganAt: string; endedAt: string | null }[]
}

let status: Promise<Status> | undefined
let loadedAt = Date.now()

async function refresh(): Promise<void> {
  try {
    replaceBy(new DOMParser().parseFromString(await ask(location.href, 'text/html'), 'text/html'))
    loadedAt = Date.now()
    status = undefined
  } catch {
    const stale = document.querySelector<HTMLElement>('#stale')
    if (stale === null) return
    stale.textContent = T.stale.replace('{age}', length((Date.now() - loadedAt) / 1000))
    stale.hidden = false
  }
}

/** The text that the server answers. One that hangs counts as one that is down. */
async function ask(url: string, type: string): Promise<string> {
  const patience = new AbortController()
  const timer = setTimeout(() => patience.abort(), PATIENCE_MS)
  try {
    const response = await fetch(url, { headers: { Accept: type }, signal: patience.signal })
    if (!response.ok) throw new Error(`status ${response.status}`)
    return await response.text()
  } finally {
    clearTimeout(timer)
  }
}

/** Swaps in the new content and keeps the reader's place: the focus, the chosen day and the expanded parts. */
function replaceBy(fresh: Document): void {
  const [main, next] = [document.querySelector('main'), fresh.querySelector('main')]
  // A proxy in front can answer with a page of its own.
  if (!main || !next?.querySelector('#stale')) throw new Error('not the status page')
  const focused = document.activeElement
  const line = focused?.getAttribute('data-line')
  const href = focused?.getAttribute('href')
  const day = focused?.getAttribute('aria-valuenow')
  for (const fold of main.querySelectorAll<HTMLDetailsElement>('details[id]')) {
    const same = next.querySelector<HTMLDetailsElement>(`#${CSS.escape(fold.id)}`)
    if (same && fold.dataset.touched !== undefined) {
      same.open = fold.open
      same.dataset.touched = ''
    }
  }
  // The form itself, with what was typed into it.
  const form = main.querySelector('form')
  if (form) next.querySelector('form')?.replaceWith(form)
  main.replaceChildren(...next.childNodes)
  document.title = fresh.title
  const icon = fresh.querySelector<HTMLLinkElement>('link[rel=icon]')
  const own = document.querySelector<HTMLLinkElement>('link[rel=icon]')
  if (icon && own) own.href = icon.href
  equip()
  const bars = line && main.querySelector<SVGElement>(`[data-line="${CSS.escape(line)}"]`)
  if (bars && day) choose(bars, Number(day))
  if (focused instanceof HTMLElement && form?.contains(focused)) focused.focus({ preventScroll: true })
  else if (bars) bars.focus({ preventScroll: true })
  else if (href)
    main.querySelector<HTMLElement>(`a[href="${CSS.escape(href)}"]`)?.focus({ preventScroll: true })
}

const tip = Object.assign(document.createElement('div'), { className: 'tip', hidden: true })
document.body.append(tip)

/** Each row of days answers to pointing, tapping and the arrow keys. */
function equip(): void {
  tip.hidden = true
  for (const bars of document.querySelectorAll<SVGElement>('.bars[data-line]')) {
    bars.setAttribute('role', 'slider')
    bars.setAttribute('tabindex', '0')
    bars.setAttribute(
      'aria-label',
      T.days.replace('{name}', () => nameOf(bars)),
    )
    bars.setAttribute('aria-valuemin', '1')
    bars.setAttribute('aria-valuemax', String(DAYS))
    bars.setAttribute('aria-valuenow', String(DAYS))
    for (const title of bars.querySelectorAll('title')) title.remove()
    const atPointer = (event: PointerEvent) => {
      const box = bars.getBoundingClientRect()
      choose(bars, Math.floor(((event.clientX - box.left) / box.width) * DAYS) + 1)
    }
    bars.addEventListener('pointermove', atPointer)
    bars.addEventListener('pointerdown', atPointer)
    bars.addEventListener('pointerleave', (event) => {
      if (event.pointerType === 'mouse') tip.hidden = true
    })
    bars.addEventListener('focus', () => {
      if (bars.matches(':focus-visible')) choose(bars, Number(bars.getAttribute('aria-valuenow')))
    })
    bars.addEventListener('blur', () => {
      tip.hidden = true
    })
    bars.addEventListener('keydown', (event) => {
      const now = Number(bars.getAttribute('aria-valuenow'))
      const to = {
        ArrowLeft: now - 1,
        ArrowRight: now + 1,
        Home: 1,
        End: DAYS,
        PageUp: now + 7,
        PageDown: now - 7,
      }[event.key]
      if (event.key === 'Escape') tip.hidden = true
      // With one of these keys it is a command of the browser, as Back is.
      if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return
      event.preventDefault()
      choose(bars, to)
    })
  }
  for (const fold of document.querySelectorAll<HTMLDetailsElement>('details[id]'))
    fold.querySelector('summary')?.addEventListener('click', () => {
      fold.dataset.touched = ''
    })
}

function nameOf(bars: SVGElement): string {
  const row = bars.closest('tr')?.querySelector('th')?.firstElementChild?.nextSibling?.textContent
  const service = bars.closest('.service')?.querySelector('h2')?.textContent ?? ''
  return row === undefined || row === null ? service : `${row.trim()} (${service})`
}

/** Shows what is known of the day with this number, 1 to 90, above its bar. */
async function choose(bars: SVGElement, number: number): Promise<void> {
  const day = Math.min(DAYS, Math.max(1, number))
  const chosen = String(day)
  bars.setAttribute('aria-valuenow', chosen)
  const say = (text: string) => {
    if (bars.getAttribute('aria-valuenow') !== chosen) return
    bars.setAttribute('aria-valuetext', text)
    tip.textContent = text
    tip.hidden = false
    const box = bars.getBoundingClientRect()
    const middle = box.left + ((day - 0.5) / DAYS) * box.width - tip.offsetWidth / 2
    const left = Math.min(Math.max(8, middle), document.documentElement.clientWidth - tip.offsetWidth - 8)
    tip.style.left = `${left + scrollX}px`
    tip.style.top = `${box.top + scrollY - tip.offsetHeight - 6}px`
  }
  if (status === undefined) {
    say(T.reading)
    // Our own answer, in the form that this script expects.
    status = ask('/status.json', 'application/json').then((text) => JSON.parse(text) as Status)
    status.catch(() => {
      status = undefined
    })
  }
  const text = await status.then(
    (read) => describe(read, bars.dataset.line ?? '', day),
    () => T.unread,
  )
  say(text)
}

function describe({ services, incidents }: Status, line: string, day: number): string {
  const [service, probe = ''] = line.split('/')
  const of = services.find((one) => one.service === service)
  const days = (probe === '' ? of : of?.probes[probe])?.days
  if (days === undefined) return T.unread
  const start = Date.parse(days.first) + (day - 1) * 86_400_000
  const date = new Date(start).toISOString().slice(0, 10)
  const trouble = days.trouble.find((one) => one.date === date)
  const said =
    trouble === undefined
      ? [days.states[day - 1] === '-' ? T.none : T.ok]
      : [
          trouble.failingSeconds > 0 ? T.failing.replace('{time}', length(trouble.failingSeconds)) : '',
          trouble.degradedSeconds > 0 ? T.degraded.replace('{time}', length(trouble.degradedSeconds)) : '',
        ].filter(Boolean)
  // A check can find trouble without adding any time, so the day's state decides.
  const worst = days.states[day - 1] === 'f' ? 'failing' : 'degraded'
  const happened = incidents.flatMap((one) => {
    const began = Date.parse(one.beganAt)
    const during = began < start + 86_400_000 && (one.endedAt === null || Date.parse(one.endedAt) > start)
    const here = one.service === service && (probe === '' || one.probe === probe)
    if (!during || !here) return []
    const item = document.getElementById(`incident-${one.service}-${one.probe}-${began / 1000}`)
    return item?.querySelector('p')?.textContent ?? []
  })
  const named = new Intl.DateTimeFormat(document.documentElement.lang, {
    dateStyle: 'medium',
    timeZone: 'UTC',
  })
  return [
    `${named.format(start)}: ${said.join(', ') || T[worst].replace('{time}', '< 1 min')}`,
    ...happened,
  ].join('. ')
}

/** `2 h 10 min`, in units that need no translation. */
function length(seconds: number): string {
  const minutes = Math.round(seconds / 60)
  if (minutes < 1) return `${Math.max(1, Math.round(seconds))} s`
  if (minutes < 60) return `${minutes} min`
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

equip()
setInterval(() => {
  if (document.visibilityState === 'visible') refresh()
}, REFRESH_MS)
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible' && Date.now() - loadedAt > REFRESH_MS) refresh()
})
