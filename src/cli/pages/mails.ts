import { Hono } from 'hono'
import PostalMime, { decodeWords } from 'postal-mime'
import { MAILS_SCRIPT } from './mails-script.ts'
import { pageOf } from './site.ts'

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

const MAILS_STYLE = `
body { height: 100vh; display: flex; flex-direction: column; }
#search { width: 13rem; }
#fresh { border-radius: 99px; background: var(--accent); color: var(--on-accent); font-weight: 600; }
main { flex: 1; min-height: 0; display: grid; grid-template-columns: 21rem minmax(0, 1fr); }
main nav { overflow-y: auto; border-right: 1px solid var(--line); }
#none, #empty { padding: 1rem 1.25rem; margin: 0; color: var(--quiet); }
li button { all: unset; box-sizing: border-box; display: block; width: 100%; padding: .7rem 1.25rem; border-bottom: 1px solid var(--line); cursor: pointer; }
li button:hover { background: var(--paper); }
li button[aria-current=true] { background: var(--chosen); box-shadow: inset 3px 0 var(--accent); }
li strong, li small { display: block; font-weight: 400; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
li small { color: var(--quiet); font-size: .85rem; }
.badge:not(:empty) { display: block; font-size: .75rem; font-weight: 600; } .badge.new { color: var(--accent); }
li:has(.new) strong { font-weight: 700; }
.gallery { padding: 12px; display: grid; grid-template-columns: repeat(2, 142px); gap: 12px; }
.gallery button { display: flex; flex-direction: column; width: 142px; height: 100%; padding: 0; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; background: var(--paper); }
.gallery button[aria-current=true] { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.gallery .label { display: block; padding: .4rem .55rem .5rem; font-size: .8rem; line-height: 1.3; }
.gallery strong, .gallery small { white-space: normal; overflow-wrap: anywhere; }
.thumb { flex: none; position: relative; height: 150px; overflow: hidden; background: #fff; pointer-events: none; border-bottom: 1px solid var(--line); }
.thumb iframe { position: absolute; inset: 0 auto auto 0; width: 600px; height: 650px; border: 0; transform: scale(.2334); transform-origin: 0 0; }
#mail { min-width: 0; min-height: 0; display: flex; flex-direction: column; background: var(--paper); }
#mail > :is(h2, p, form) { margin: .2rem 1.25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; line-height: 1.3; } #mail > h2 { margin-top: .8rem; }
#meta, #facts { color: var(--quiet); font-size: .9rem; font-variant-numeric: tabular-nums; } #facts { min-height: 1.4em; }
meter { width: 8rem; height: .7rem; vertical-align: -1px; margin-left: .4rem; }
#fault { font: 600 13px/1.5 ui-monospace, monospace; }
#tools, #sender { display: flex; flex-wrap: wrap; gap: .5rem .9rem; align-items: center; font-size: .9rem; }
#tools span[role=group] { display: inline-flex; } #tools span button { border-radius: 0; }
#back { display: none; }
[role=tablist] { display: flex; padding: 0 .75rem; border-bottom: 1px solid var(--line); overflow-x: auto; flex: none; }
[role=tab] { all: unset; box-sizing: border-box; display: inline-flex; align-items: center; padding: .45rem .75rem; cursor: pointer; color: var(--quiet); border-bottom: 2px solid transparent; white-space: nowrap; }
[role=tab][aria-selected=true] { color: var(--ink); border-bottom-color: var(--accent); }
#count:not(:empty) { margin-left: .4rem; padding: 0 .4rem; border-radius: 99px; background: var(--chosen); color: var(--ink); font-size: .8rem; }
#body { flex: 1; min-height: 0; display: flex; background: var(--ground); }
#view { flex: 1; min-width: 0; overflow: auto; position: relative; }
#view iframe { display: block; margin: 0 auto; border: 0; max-width: 100%; height: 100%; background: #fff; }
#view iframe.next { position: absolute; visibility: hidden; }
.four { display: grid; grid-template-columns: 600px 360px; gap: 1.25rem; padding: 1.25rem; justify-content: center; align-items: start; }
figure { margin: 0; } figcaption { color: var(--quiet); font-size: .85rem; padding-bottom: .35rem; }
figure > div { box-shadow: 0 0 0 1px var(--line); border-radius: 8px; overflow: hidden; }
pre { margin: 0; padding: 1.25rem; white-space: pre-wrap; }
dl { margin: 0; padding: 1.25rem; display: grid; grid-template-columns: max-content 1fr; gap: .45rem 1.25rem; font-size: .93rem; }
dt { color: var(--quiet); } dd { margin: 0; }
.findings, .blank, .parts { padding: 1.25rem; margin: 0; max-width: 60rem; } .findings { display: grid; gap: .75rem; } .findings h3 { font-size: 1rem; margin: .75rem 0 0; } .parts h3 { font-size: 1rem; margin: 1rem 0 .3rem; } .parts li { overflow-wrap: anywhere; }
.finding { border: 1px solid var(--line); border-left: 4px solid currentcolor; border-radius: 8px; background: var(--paper); padding: .65rem .9rem; }
.finding p { margin: .15rem 0 0; color: var(--ink); overflow-wrap: anywhere; } .finding code { color: var(--quiet); }
#slots { flex: none; width: 19rem; overflow-y: auto; padding: .9rem 1.25rem; border-left: 1px solid var(--line); background: var(--paper); }
#slots summary { font-weight: 600; cursor: pointer; } #slots form { display: grid; gap: .9rem; margin-top: .8rem; } #slots label { display: grid; gap: .25rem; font-weight: 600; } #slots input { font-weight: 400; } #slots label small { font-weight: 400; color: var(--quiet); }
/* There is no room for two columns beside the gallery: desktop views come first, then the phones side by side. */
@media (max-width: 106rem) { .four { display: flex; flex-wrap: wrap; } .four figure { max-width: 100%; } .four figure:nth-child(even) { order: 1; } }
@media (max-width: 64rem) { #body { flex-direction: column; overflow-y: auto; } #view { flex: none; min-height: 50vh; } #slots { width: auto; border: 0; } }
/* On a phone either the list is shown or one mail, which has an address of its own: Back leads to the list. */
@media (max-width: 52rem) {
  body { height: auto; min-height: 100vh; } #search { width: 100%; } main { grid-template-columns: minmax(0, 1fr); } main nav { border: 0; }
  body:not(.reading) #mail, .reading main nav, .reading #search { display: none; } #back { display: inline-flex; min-height: 44px; align-items: center; }
  .gallery { grid-template-columns: repeat(auto-fill, 142px); justify-content: center; }
  #body, #view { overflow: visible; } #view iframe { min-height: 75vh; } .four { padding: .75rem; } dl { grid-template-columns: 1fr; gap: .1rem; } dd { margin-bottom: .5rem; }
}
`
