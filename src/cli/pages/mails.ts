import { Hono } from 'hono'
import PostalMime, { decodeWords } from 'postal-mime'
import { MAILS_SCRIPT } from './mails-script.ts'
import { pageOf } from './site.ts'
import { MAILS_STYLE } from './style.ts'

export async function readMail(source: Uint8Array) {
  const { from, to, date, headers, attachments, ...mail } = await PostalMime.parse(source)
  const { subject = '(no subject)', html = '', text = '' } = mail
  return {
    from: from?.address ?? '',
    to: to?.[0]?.address ?? '',
    /** `date` in ISO 8601. */
    subject,
    date,
    html,
    text,
    headers: headers.map(({ originalKey, value }) => ({ name: originalKey, value: decodeWords(value) })),
    attachments: attachments.map(({ filename, mimeType, content }) => ({
      name: filename ?? '(no name)',
      type: mimeType,
      bytes: typeof content === 'string' ? content.length : content.byteLength,
    })),
  }
}

/** Gmail shows no more of a mail's HTML than this. */
const CLIP_BYTES = 102 * 1024

export interface MailSource {
  /** In the order that the page shows. */
  list(): Promise<readonly object[]>
  /** Undefined: there is none of this id. `about` is shown under the subject. */
  message(
    id: string,
    query: URLSearchParams,
  ): Promise<{ readonly source: Uint8Array; readonly about: string } | undefined>
  fault(error: unknown): string
  /** The policy that a mail is shown with: what it holds was written by others. */
  readonly policy: string
}

export function mailRoutes({ list, message, fault, policy }: MailSource): Hono {
  return new Hono()
    .get('/mails.json', async (c) => c.json(await list()))
    .get('/mails/*', async (c, next) => {
      const [, id = '', view] = /^\/mails\/(.+)\.(html|json|eml)$/.exec(c.req.path) ?? []
      try {
        const found = await message(id, new URL(c.req.url).searchParams)
        if (found === undefined) return await next()
        const { source, about } = found
        if (view === 'eml') {
          const name = `attachment; filename="${id.replace('/', '-')}.eml"`
          const type = { 'Content-Type': 'message/rfc822', 'Content-Disposition': name }
          return c.body(Buffer.from(source), 200, type)
        }
        const mail = await readMail(source)
        const headers = { 'Content-Security-Policy': policy }
        if (view === 'html') return c.html(inScheme(mail.html, c.req.query('scheme')), 200, headers)
        const bytes = { htmlBytes: Buffer.byteLength(mail.html), totalBytes: source.length }
        return c.json({ ...mail, about, source: `${Buffer.from(source)}`, ...bytes, clipBytes: CLIP_BYTES })
      } catch (error) {
        return view === 'json' ? c.json({ fault: fault(error) }) : c.text(fault(error), 422)
      }
    })
}

/** The mail as it looks in a scheme: a frame follows the reader's own, so the media query is rewritten. Links open beside it. */
function inScheme(html: string, scheme = 'light'): string {
  return html
    .replaceAll(/\(prefers-color-scheme: ?dark\)/g, scheme === 'dark' ? 'all' : 'not all')
    .replace('color-scheme: light dark', `color-scheme: ${scheme === 'dark' ? 'dark' : 'light'}`)
    .replace(/<head\b[^<>]*>/i, '$&<base target="_blank">')
}

const VIEWS = {
  html: 'HTML',
  all: 'All four',
  text: 'Plain text',
  headers: 'Headers',
  source: 'Source',
  parts: 'Links and attachments',
} as const

export function mailsPage(page: {
  readonly title: string
  readonly heading: string
  /** HTML after the heading. */
  readonly nav?: string
  readonly gallery?: boolean
  /** Views besides those that every mail has. */
  readonly views?: Readonly<Record<string, string>>
  /** HTML of more buttons for the mail, below them, and beside its view. */
  readonly tools: string
  readonly below?: string
  readonly side?: string
  readonly empty: string
  /** Defines `page`, which MAILS_SCRIPT asks. */
  readonly script: string
}): Response {
  const { title, heading, views, tools, empty, script } = page
  const { nav = '', gallery = false, below = '', side = '' } = page
  const tabs = Object.entries({ ...VIEWS, ...views }).map(
    ([view, text]) =>
      `<button role="tab" id="tab-${view}" data-view="${view}" aria-controls="view" aria-selected="false" tabindex="-1">${text}${view === 'findings' ? '<span id="count"></span>' : ''}</button>`,
  )
  return pageOf({
    title,
    style: MAILS_STYLE,
    script: `${script}${MAILS_SCRIPT}`,
    body: `<header>
  <h1>${heading}</h1>${nav}
  <p id="status" role="status"></p>
  <button id="fresh" hidden></button>
  <input id="search" type="search" aria-label="Search mails" placeholder="Search mails ( / )" autocomplete="off">
</header>
<main>
  <nav aria-label="${heading}"><ol id="list"${gallery ? ' class="gallery"' : ''}></ol><p id="none" hidden>No mail matches.</p></nav>
  <article id="mail" aria-label="Chosen mail" hidden>
    <p id="back"><a href="#">← All mails</a></p>
    <h2 id="subject"></h2>
    <p id="meta"></p>
    <p id="facts"><span id="sizes"></span> <meter id="clip" min="0" low="40960" high="81920" optimum="0"></meter></p>
    <p id="fault" class="fault" role="alert" hidden></p>
    <p id="tools">
      <span role="group" aria-label="Width"><button data-width="600">Desktop</button><button data-width="360">Phone</button></span>
      <span role="group" aria-label="Color scheme of the mail"><button data-scheme="light">Light</button><button data-scheme="dark">Dark</button></span>
      <button id="copy">Copy</button> <a id="download" download>Download .eml</a> ${tools}
    </p>
    ${below}
    <div role="tablist" aria-label="Views of the mail">${tabs.join('')}</div>
    <div id="body"><div id="view" role="tabpanel" aria-labelledby="tab-html" tabindex="0"></div>${side}</div>
  </article>
  <p id="empty" hidden>${empty}</p>
</main>`,
  })
}
