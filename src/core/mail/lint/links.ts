import { elements, textOf } from './cascade.ts'
import type { LintedMail } from './mail.ts'

/** The host of every sample link; a real mail has the platform's own address instead. */
const SAMPLE_HOST = 'www.example.com'
const SHORTENERS = 'bit.ly t.co tinyurl.com goo.gl ow.ly is.gd buff.ly rb.gy cutt.ly'.split(' ')

/** Every link: absolute, honest about where it leads, and to a page that exists when it leads to the platform. */
export function checkLinks(mail: LintedMail, pages: readonly string[]): void {
  const served = pages.map((path) => new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`))
  for (const anchor of elements(mail.document)) {
    const href = anchor.attribs.href
    if (anchor.name !== 'a' || href === undefined) continue
    const slot = Object.entries(mail.compiled.slots).find(([, { sample }]) => sample === href)?.[0]
    const place = mail.place(slot === undefined ? href : `${slot}:`)
    const url = URL.canParse(href) ? new URL(href) : undefined
    if (url === undefined || !/^(?:https?|mailto):$/.test(url.protocol)) {
      mail.report('link-unsafe', `The link ${href} is not an absolute URL.`, place)
      continue
    }
    // A site that somebody else built has pages of its own; below these, only the engine answers.
    const ours = mail.files.brand === undefined || /^\/(?:api|lessons)\//.test(url.pathname)
    const named = slot === undefined ? 'The link' : `The link of the slot ${slot}`
    if (ours && url.hostname === SAMPLE_HOST && !served.some((page) => page.test(url.pathname)))
      mail.report(
        'link-without-route',
        `${named} leads to ${url.pathname}, which the platform does not serve.`,
        place,
      )
    if (SHORTENERS.includes(url.hostname))
      mail.report('link-shortened', `The link ${href} is shortened.`, place)
    const shown = /^\s*(?:https?:\/\/)?((?:[a-z0-9-]+\.)+[a-z]{2,})(?:[/?#]\S*)?\s*$/i.exec(
      textOf(anchor),
    )?.[1]
    if (shown !== undefined && url.protocol !== 'mailto:' && site(shown) !== site(url.hostname))
      mail.report('link-misleads', `The link text shows ${shown}, but the link opens ${url.hostname}.`, place)
  }
}

function site(host: string): string {
  return host.toLowerCase().replace(/^www\./, '')
}
