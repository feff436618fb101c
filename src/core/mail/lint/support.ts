import { caniemail, rawData } from 'caniemail'
import type { LintedMail } from './mail.ts'

/** The clients that matter: together they open nearly all mail (Litmus and Email on Acid publish the shares). */
const CLIENTS = {
  'apple-mail.ios': 'Apple Mail on iOS',
  'apple-mail.macos': 'Apple Mail on macOS',
  'gmail.desktop-webmail': 'Gmail',
  'gmail.ios': 'Gmail on iOS',
  'gmail.android': 'Gmail on Android',
  'outlook.windows': 'Outlook on Windows',
  'outlook.outlook-com': 'Outlook.com',
  'outlook.macos': 'Outlook on macOS',
  'outlook.ios': 'Outlook on iOS',
  'outlook.android': 'Outlook on Android',
  'yahoo.desktop-webmail': 'Yahoo Mail',
  'samsung-email.android': 'Samsung Email',
  'thunderbird.macos': 'Thunderbird',
  'protonmail.desktop-webmail': 'Proton Mail',
} as const

type Client = keyof typeof CLIENTS
const NAMES = Object.keys(CLIENTS) as Client[]

/** Where these are missing, the mail is plainer and says the same: a corner is square, a scheme stays light. */
const GRACEFUL =
  /^(?:@media|@media \(prefers-color-scheme\)|!important keyword|border-radius|color-scheme.*|cursor|target attribute|outline|opacity|word-break|<style> element|<body> element|<meta>.*|[\w ]*selectors?|aria-.*|role attribute|dir attribute|lang attribute|system-ui.*|font-weight|text-decoration|border-collapse|HTML comments|letter-spacing|text-transform)$/i

/** Reports what the operator wrote and a client that matters does not support. What MJML writes is made for them. */
export function checkSupport(mail: LintedMail): void {
  const support = supportOf(mail.rendered.html)
  for (const [id, lacks, level] of [
    ['support-missing', 'do not support', 'missing'],
    ['support-partial', 'only partly support', 'partial'],
  ] as const) {
    for (const title of new Set(support.flatMap((one) => one[level]))) {
      const place = GRACEFUL.test(title) ? undefined : placeOf(title, mail)
      if (place === undefined) continue
      const names = support.flatMap((one) => (one[level].includes(title) ? one.client : [])).join(', ')
      const url = rawData.data.find((feature) => feature.title === title)?.url ?? 'https://www.caniemail.com'
      mail.report(
        id,
        `Mail clients ${lacks} ${title}: ${names}.`,
        place,
        `Avoid it, or check what these clients show instead: ${url}`,
      )
    }
  }
}

/** What each mail client above does not support of a mail, also of what MJML wrote: titles of caniemail.com. */
export function supportOf(html: string) {
  fillGaps()
  const { issues } = caniemail({ clients: NAMES, html })
  const titles = (found: (typeof issues)['errors'], client: Client) => [
    ...new Set((found.get(client) ?? []).map(({ title }) => title)),
  ]
  return NAMES.map((client) => {
    const [missing, partial] = [titles(issues.errors, client), titles(issues.warnings, client)]
    return { client: CLIENTS[client], missing, partial }
  })
}

/** Where the operator wrote a feature, by hand or in Markdown; undefined if only MJML's output has it. */
function placeOf(title: string, mail: LintedMail) {
  const element = /^<([a-z0-9]+)> element$/.exec(title)?.[1]
  if (element !== undefined) {
    const written = mail.written(`<${element} `, `<${element}>`)
    const inBody = mail.compiled.body.some((part) => typeof part === 'string' && part.includes(`<${element}`))
    return written ?? (inBody ? mail.place() : undefined)
  }
  const attribute = /^([a-z-]+) attribute$/.exec(title)?.[1]
  // On HTML elements only: MJML translates the attributes of its own elements.
  if (attribute !== undefined) return mail.written(new RegExp(`<(?!mj)[a-z][^<>]*\\s${attribute}=`))
  const [name = '', value] = title.replace(/ (?:property|CSS property|keyword)$/, '').split(/:\s*/)
  const property = `(?<![\\w-])${name.replace(/[^\w-]/g, '\\$&')}\\s*`
  return mail.written(new RegExp(property + (value === undefined ? '[:(]' : `:\\s*${value}`)))
}

let filled = false

/** Marks features that were never tested in a client as unknown. Without this the library throws for them. */
function fillGaps(): void {
  if (filled) return
  filled = true
  for (const { stats } of rawData.data)
    for (const client of NAMES) {
      const [family = '', platform = ''] = client.split('.')
      // The data is a plain JSON document, typed by its known families.
      const families = stats as Record<string, Record<string, Record<string, string>>>
      families[family] ??= {}
      const platforms = families[family]
      if (Object.keys(platforms[platform] ?? {}).length === 0) platforms[platform] = { unknown: 'u' }
    }
}
