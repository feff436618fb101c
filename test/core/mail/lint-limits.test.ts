import { parseDocument } from 'htmlparser2'
import { describe, expect, test } from 'vitest'
import { cascade, elements, type Scheme } from '../../../src/core/mail/lint/cascade.ts'
import { lintCompiled } from '../../../src/core/mail/lint/lint.ts'
import type { LintRule } from '../../../src/core/mail/lint/rules.ts'
import type { MailBrand, Slot } from '../../../src/core/mail/template.ts'
import { PAGES } from '../../../src/daemon/routes.ts'

interface Given {
  readonly body?: string
  readonly head?: string
  readonly html?: string
  readonly text?: string
  readonly subject?: string
  readonly source?: string
  readonly layout?: string
  readonly slots?: Readonly<Record<string, Slot>>
  readonly lesson?: boolean
  readonly brand?: MailBrand
}

const words = (count: number) => 'word '.repeat(count).trim()

/** The findings of lint for a mail with this HTML, as if MJML had made it. */
function lint({
  body = '',
  head = '',
  html = `<html lang="en"><head>${head}</head><body>${body}</body></html>`,
  text = words(2000),
  subject = 'A plain subject',
  source = `---\nsubject: ${subject}\n---\n${body}`,
  layout = '',
  slots = {},
  lesson = false,
  brand,
}: Given) {
  return lintCompiled({
    files: {
      definition: { name: 'mail', lesson },
      file: 'mail.md',
      source,
      layout,
      folder: 'mails',
      layoutFolder: 'layouts',
      brand,
    },
    compiled: { slots, subject: [subject], html: [html], text: [text], body: [] },
    shown: (folder, file) => `${folder}/${file}`,
    pages: PAGES,
  })
}

const idsOf = (given: Given) => lint(given).findings.map(({ id }) => id)
const placeOf = (id: LintRule, given: Given) => {
  const { file, line, column } = lint(given).findings.find((one) => one.id === id)?.location ?? {}
  return `${file}:${line}:${column}`
}
const SITE = 'https://www.example.com'
const repeat = (count: number, html: string) => html.repeat(count)
const link = '<a href="https://a.example/">a</a> '
const image = '<img src="https://a.example/a.png" alt="a">'
const href = (url: string, text = 'a') => ({ body: `<a href="${url}">${text}</a>` })
const styled = (style: string, text = 'x') => ({ body: `<p style="${style}">${text}</p>` })
const UNSUBSCRIBE = { unsubscribeUrl: { type: 'url', sample: 'https://a.example/end' } } as const
const lettered = (count: number) => 'a'.repeat(count)
/** A page of exactly so many bytes; the comment is no text. */
const bytes = (count: number) => {
  const [start, end] = ['<html lang="en"><body>é<!--', '--></body></html>']
  return `${start}${'x'.repeat(count - Buffer.byteLength(start + end))}${end}`
}

test.each<[id: LintRule, passes: Given, fails: Given]>([
  ['html-large', { html: bytes(40 * 1024) }, { html: bytes(40 * 1024 + 1) }],
  ['subject-long', { subject: lettered(60) }, { subject: lettered(61) }],
  ['subject-shouts', { subject: 'ABCDE' }, { subject: 'ABCDEF' }],
  ['subject-shouts', { subject: '漢字漢字漢字漢字' }, { subject: 'É 1 ABCDEÉ' }],
  ['subject-shouts', { subject: 'Open this!' }, { subject: 'Open! this!' }],
  ['subject-shouts', { subject: 'Open this?' }, { subject: 'Open this?!' }],
  ['subject-pretends', { subject: 'Prefer: this' }, { subject: ' RE : this' }],
  ['subject-pretends', { subject: 'This is re: that' }, { subject: 'fw: this' }],
  ['subject-pretends', { subject: 'Forward: this' }, { subject: 'Fwd: this' }],
  ['subject-pretends', { subject: 'Away: this' }, { subject: 'AW: this' }],
  ['words-of-spam', { subject: 'A fact now' }, { subject: 'Act now' }],
  ['words-of-spam', { body: 'winners' }, { body: 'The WINNER is' }],
  ['words-of-spam', { body: 'free of risk' }, { body: 'risk free' }],
  ['words-of-spam', { body: 'click <style>here</style>' }, { body: 'click <b>here</b>' }],
  [
    'preheader-long',
    { source: `preheader: ${lettered(100)}\n` },
    { source: `subject: x\npreheader:   ${lettered(101)}\n` },
  ],
  ['plain-text-missing', { body: words(20), text: words(10) }, { body: words(20), text: words(9) }],
  ['plain-text-missing', { body: '1 2 3 4 - =', text: '' }, { body: 'one', text: '1 2 3 =' }],
  ['links-many', { body: repeat(4, link) }, { body: repeat(5, link) }],
  ['links-many', { body: repeat(5, link) + words(95) }, { body: repeat(5, link) + words(94) }],
  ['links-many', { body: repeat(5, '<a name="a">a</a> ') }, { body: repeat(5, link) }],
  ['image-without-alt', { body: '<img src="a" alt="">' }, { body: '<img src="a">' }],
  ['image-without-alt', { layout: '<mj-image src="a" alt="" />' }, { layout: '<mj-image src="a" />' }],
  ['image-embedded', { body: '<img alt="" src="https://data:1/">' }, { body: '<img alt="" src=" DATA:x">' }],
  ['image-embedded', { body: '<img alt="">' }, { body: '<img alt="" src="data:">' }],
  ['images-without-text', { body: image + words(20) }, { body: image + words(19) }],
  ['images-without-text', { body: image + image + words(40) }, { body: image + image + words(39) }],
  ['images-without-text', { body: '' }, { body: image }],
  ['language-missing', { html: '<html lang="de"></html>' }, { html: '<html lang="und"></html>' }],
  ['language-missing', { html: '<html lang="en"></html>' }, { html: '<html lang=""></html>' }],
  ['language-missing', { html: '<html lang="en"></html>' }, { html: '<body lang="en"></body>' }],
  ['unsubscribe-missing', {}, { lesson: true }],
  [
    'unsubscribe-missing',
    { lesson: true, slots: UNSUBSCRIBE, ...href('https://a.example/end') },
    { lesson: true, slots: UNSUBSCRIBE, body: link },
  ],
  ['text-hidden', styled('display:block'), styled('display:none')],
  ['text-hidden', styled('display:none', ' '), styled('visibility:hidden')],
  ['text-hidden', styled('font-size:1px'), styled('font-size:0')],
  ['text-hidden', styled('display:none;max-height:0px;opacity:0'), styled('display:none;max-height:0px')],
  ['text-hidden', {}, styled('display:none;opacity:0')],
  ['link-unsafe', href('mailto:a@a.example'), href('ftp://a.example/')],
  ['link-unsafe', href('http://a.example/'), href('//a.example/')],
  ['link-unsafe', { body: '<link href="/a"><a>a</a>' }, href('')],
  ['link-unsafe', {}, href('xhttps://a.example/')],
  ['link-without-route', href(`${SITE}/lessons/1`), href(`${SITE}/lessons/1/more`)],
  ['link-without-route', href(`${SITE}/insights`), href(`${SITE}/an/insights`)],
  // A route that takes no GET.
  ['link-without-route', href('https://other.example.com/nowhere'), href(`${SITE}/api/checkout`)],
  [
    'link-misleads',
    href('https://WWW.Bank.example/x', 'bank.EXAMPLE'),
    href('https://www.bank.example/x', 'sub.bank.example'),
  ],
  [
    'link-misleads',
    href('https://a.example/', 'see b.example'),
    href('https://a.example/', ' HTTPS://b.example/path?x '),
  ],
  [
    'link-misleads',
    href('https://a.example/', 'b.example and more'),
    href('https://a.example/', '<b>b.example</b>'),
  ],
  [
    'link-misleads',
    href('mailto:ada@a.example', 'b.example'),
    href('https://bwww.example/', 'www.b.example'),
  ],
])('%s is found just beyond the limit and not at it: %j', (id, passes, fails) => {
  expect(idsOf(passes)).not.toContain(id)
  expect(idsOf(fails)).toContain(id)
})

test('a counting finding gives the number', () => {
  const causes = lint({
    html: `<html lang="en"><body>${repeat(5, link)}${repeat(2, image)}<!--${'x'.repeat(41_500)}--></body></html>`,
    subject: lettered(61),
    source: `preheader: ${lettered(101)}`,
  }).findings.map(({ cause }) => cause)
  for (const cause of [
    /^The HTML is 40\.\d KB; the limit is 40 KB\.$/,
    /^The subject has 61 characters\.$/,
    /^The preheader has 101 characters\.$/,
    /^The mail has 5 links in 5 words\.$/,
    /^The mail has 2 image\(s\) and 5 words\.$/,
  ])
    expect(causes).toContainEqual(expect.stringMatching(cause))
})

test('a link is found that a known service shortens, and no other of a similar name', () => {
  for (const host of [
    'bit.ly',
    't.co',
    'tinyurl.com',
    'goo.gl',
    'ow.ly',
    'is.gd',
    'buff.ly',
    'rb.gy',
    'cutt.ly',
  ])
    expect(idsOf(href(`https://${host}/x`, 'more')), host).toContain('link-shortened')
  expect(idsOf(href('https://not-t.co/x', 'more'))).not.toContain('link-shortened')
})

test('every active element is found, with its place', () => {
  const active = 'script form input button iframe object embed video audio canvas'.split(' ')
  const { findings, summary } = lint({ body: active.map((name) => `<${name}></${name}>`).join('\n') })
  const found = findings.filter(({ id }) => id === 'content-active')
  expect(found.map(({ location }) => location?.line)).toEqual(active.map((_, index) => index + 4))
  expect(found.map(({ cause }) => cause)).toEqual(active.map((name) => `The mail contains a <${name}>.`))
  expect(summary.errors).toBe(findings.filter(({ severity }) => severity === 'error').length)
  expect(summary.warnings).toBe(findings.filter(({ severity }) => severity === 'warning').length)
})

test('on a site of one’s own only what the engine serves must be a route', () => {
  const brand = { platformName: 'x', accent: '#000', onAccent: '#fff', accentInDark: '#fff' }
  const of = (path: string) =>
    idsOf({ brand, body: `<a href="https://www.example.com${path}">a</a>` }).includes('link-without-route')
  expect(
    ['/nowhere', '/xapi/x', '/shop/api/x', '/api', '/lessons/1', '/api/x', '/lessons/1/2'].map(of),
  ).toEqual([false, false, false, false, false, true, true])
})

test('a finding points at the slot, the template or the layout that holds its cause, to the column', () => {
  const slots = { nextUrl: { type: 'url', sample: 'https://www.example.com/nowhere' } } as const
  expect(
    placeOf('link-without-route', {
      slots,
      source: '---\nslots:\n  nextUrl: { }\n---',
      body: '<a href="https://www.example.com/nowhere">a</a>',
    }),
  ).toBe('mails/mail.md:3:3')
  expect(placeOf('link-unsafe', { body: 'x <a href="/a">a</a>' })).toBe('mails/mail.md:4:12')
  expect(placeOf('language-missing', { html: '<html></html>', layout: '\n <mjml>' })).toBe(
    'layouts/layout.mjml:2:2',
  )
  expect(placeOf('language-missing', { html: '<html></html>' })).toBe('mails/mail.md:1:1')
  expect(placeOf('subject-long', { subject: lettered(61) })).toBe('mails/mail.md:2:1')
})

test('the same problem at one place is one finding, and at two places two', () => {
  const of = (body: string) => idsOf({ body }).filter((id) => id === 'link-unsafe').length
  expect(of('<a href="/a">a</a> <a href="/a">b</a>')).toBe(1)
  expect(of('<a href="/a">a</a> <a href="/b">b</a>')).toBe(2)
})

test('a summary counts bytes, and not characters', () => {
  const { summary } = lint({ html: '<html lang="en">é</html>', text: 'ü' })
  expect(summary).toMatchObject({ name: 'mail', subject: 'A plain subject', htmlBytes: 25, textBytes: 2 })
})

describe('contrast', () => {
  const found = (given: Given) =>
    lint(given)
      .findings.filter(({ id }) => id === 'contrast-low')
      .map(({ cause }) => / in the (\w+) scheme/.exec(cause)?.[1])
  /** On a white ground in both schemes. */
  const on = (style: string, html = 'text', element = 'p') =>
    found({
      body: `<div style="background-color:#fff"><${element} style="${style}">${html}</${element}></div>`,
    })
  const both = ['light', 'dark']

  test.each([
    ['color:#767676', []],
    ['color:#777777', both],
    // Large text needs 3:1.
    ['color:#949494;font-size:24px', []],
    ['color:#949494;font-size:23.9px', both],
    ['color:#959595;font-size:24px', both],
    ['color:#949494;font-size:18.66px;font-weight:bold', []],
    ['color:#949494;font-size:18.65px;font-weight:bold', both],
    ['color:#949494;font-size:18.66px;font-weight:700', []],
    ['color:#949494;font-size:18.66px;font-weight:699', both],
    ['color:#949494;font-size:18.66px', both],
  ])('of %s on white is too low in %j', (style, schemes) => {
    expect(on(style)).toEqual(schemes)
  })

  /** Each is within 0.1 % of the limit, so that any other color of the browser's own would judge it otherwise. */
  test.each([
    ['light', 'text', '#6772a1', true],
    ['light', 'text', '#767676', false],
    ['light', 'link', '#8ab8e4', false],
    ['light', 'link', '#56c2d3', true],
    ['light', 'ground', '#527aa2', false],
    ['light', 'ground', '#46844d', true],
    ['dark', 'text', '#27874f', false],
    ['dark', 'text', '#46844d', true],
    ['dark', 'link', '#4e15a2', false],
    ['dark', 'link', '#023499', true],
    ['dark', 'ground', '#ac56d5', false],
    ['dark', 'ground', '#bb6264', true],
  ] as const)(
    'in the %s scheme the browser’s own %s beside %s is too low in contrast: %s',
    (scheme, own, color, low) => {
      const style = own === 'ground' ? `color:${color}` : `background:${color}`
      const head = `<style>@media (prefers-color-scheme:${scheme}){p{${style}}}</style>`
      const body = own === 'link' ? '<p><a href="https://a.example/">text</a></p>' : '<p>text</p>'
      expect(found({ head, body })).toEqual(low ? [scheme] : [])
    },
  )

  test('headings, bold text and table heads are bold by default', () => {
    const style = 'color:#949494;font-size:18.66px'
    for (const name of ['h1', 'h6', 'b', 'strong', 'th']) expect(on(style, 'text', name), name).toEqual([])
    for (const name of ['h7', 'big', 'td', 'header']) expect(on(style, 'text', name), name).toEqual(both)
    expect(on(style, '<i>text</i>', 'b')).toEqual([])
  })

  test('text has the color of the nearest that gives it one, and a link its own', () => {
    const link = '<a href="https://a.example/">text</a>'
    expect(on('color:#fff', 'text')).toEqual(both)
    expect(on('color:#fff', link)).toEqual(['dark'])
    expect(on('color:#fff', '<a>text</a>')).toEqual(both)
    expect(on('color:#fff', link.replace('<a', '<a style="color:inherit"'))).toEqual(both)
    expect(on('color:#fff', '<b style="color:#000">text</b>')).toEqual([])
    // The browser's own: black on white, white on black.
    expect(found({ body: '<p>text</p>' })).toEqual([])
    expect(found({ body: '<p style="color:#000">text</p>' })).toEqual(['dark'])
    expect(found({ body: '<p style="color:#fff">text</p>' })).toEqual(['light'])
    expect(found({ body: link })).toEqual([])
  })

  test('a ground is painted from the first opaque one up, and an image under a text is not judged', () => {
    const over = (...grounds: string[]) =>
      found({
        body: grounds.reduceRight(
          (inner, ground) => `<div style="${ground}">${inner}</div>`,
          '<p style="color:#fff">text</p>',
        ),
      })
    expect(over('background-color:#fff', 'background-color:#000')).toEqual([])
    expect(over('background-color:#000', 'background-color:#fff')).toEqual(both)
    expect(over('background-color:#fff', 'background-color:rgba(0,0,0,0.6)')).toEqual([])
    expect(over('background-color:#fff', 'background-color:rgba(0,0,0,0.5)')).toEqual(both)
    expect(over('background-color:rgba(0,0,0,0.6)')).toEqual([])
    expect(over('background:#000 none')).toEqual([])
    expect(over('background:#fff', 'background:url(a.png)')).toEqual([])
    expect(over('background:#fff', 'background:linear-gradient(red, blue)')).toEqual([])
    expect(over('background:#fff', 'background-color:inherit')).toEqual(both)
  })

  test('hidden text is not checked', () => {
    const white = 'style="color:#fff;background-color:#fff"'
    for (const hidden of [
      `<div style="display:none"><p ${white}>text</p></div>`,
      `<p ${white}> </p>`,
      `<script ${white}>text</script>`,
    ])
      expect(found({ body: hidden })).toEqual([])
    expect(found({ head: `<title ${white}>text</title>` })).toEqual([])
  })

  test('a finding says how low it is, how much is needed, and quotes no more than 40 characters', () => {
    const of = (text: string) =>
      lint({ body: `<p style="color:#777;background-color:#fff">${text}</p>` }).findings.map(
        ({ cause, fix }) => `${cause} ${fix}`,
      )
    expect(of(`a\n ${lettered(38)}`)).toEqual([
      `The text “a ${lettered(38)}” has a contrast of 4.5:1 in the light scheme; the minimum is 4.5:1. Increase the contrast between text and background.`,
      `The text “a ${lettered(38)}” has a contrast of 4.5:1 in the dark scheme; the minimum is 4.5:1. Increase the contrast between text and background, under prefers-color-scheme: dark.`,
    ])
    expect(of(lettered(41))[0]).toContain(`“${lettered(39)}…”`)
  })
})

describe('the cascade', () => {
  /** The declared value for the element with the id `x`. */
  const value = (
    css: string,
    html = '<p id="x" class="c" title="t">text</p>',
    scheme: Scheme = 'light',
    property = 'color',
  ) => {
    const document = parseDocument(`<style>${css}</style><div>${html}</div>`)
    const element = [...elements(document)].find(({ attribs }) => attribs.id === 'x')
    return element && cascade(document, scheme).get(element)?.get(property)?.value
  }

  test.each([
    ['p{color:red}p{color:blue}', 'blue'],
    ['.c{color:red}p{color:blue}', 'red'],
    ['#x{color:red}.c{color:blue}', 'red'],
    ['div p{color:red}p{color:blue}', 'red'],
    ['div>p{color:red}p{color:blue}', 'red'],
    ['p.c{color:red}.c{color:blue}', 'red'],
    ['[title]{color:red}div p{color:blue}', 'red'],
    [':first-child{color:red}div p{color:blue}', 'red'],
    ['.c.c{color:red}#x{color:blue}', 'blue'],
    ['p{color:red !important}#x{color:blue}', 'red'],
    ['p{color:red !IMPORTANT}#x{color:blue!important}', 'blue'],
    ['h1,P,h2{COLOR:red}', 'red'],
    ['p::-ms-check{color:red}p:-ms-input:x{color:blue}', undefined],
    ['@media print{p{color:red}}', undefined],
    ['@media (max-width:480px){p{color:red}}', 'red'],
    ['@media screen{@media print{p{color:red}}}', undefined],
    ['@media (prefers-color-scheme:dark){p{color:red}}', undefined],
    ['@media (prefers-color-scheme : light){p{color:red}}', 'red'],
    ['p{background:blue}', undefined],
    ['/* p */ p{/* color */color:red}', 'red'],
  ])('%s gives %j', (css, expected) => {
    expect(value(css)).toBe(expected)
  })

  test('attributes are weakest, then sheets, then the element’s own style, then what is important', () => {
    const html = (rest: string) => `<td id="x" ${rest}>text</td>`
    const ground = (css: string, rest: string) => value(css, html(rest), 'light', 'background-color')
    expect(ground('', 'bgcolor="red"')).toBe('red')
    expect(ground('td{background-color:blue}', 'bgcolor="red"')).toBe('blue')
    expect(ground('#x{background-color:blue}', 'style="Background-Color: green "')).toBe('green')
    expect(ground('td{background-color:blue !important}', 'style="background-color:green"')).toBe('blue')
    expect(ground('td{background-color:blue !important}', 'style="background-color:green !important"')).toBe(
      'green',
    )
    expect(ground('', 'style="a;:b;background-color:url(x:y)"')).toBe('url(x:y)')
    expect(value('', '<font id="x" color="red">text</font>')).toBe('red')
    expect(value('font{color:blue}', '<font id="x" color="red">text</font>')).toBe('blue')
    expect(value('', '<p id="x" color="red">text</p>')).toBeUndefined()
  })

  test('a sheet counts in the scheme that it is for, and the two schemes are kept apart', () => {
    const document = parseDocument(
      '<style media="(prefers-color-scheme: dark)">p{color:red}</style><style media="print">p{color:blue}</style><p>x</p>',
    )
    const [paragraph] = [...elements(document)].filter(({ name }) => name === 'p')
    const of = (scheme: Scheme) => paragraph && cascade(document, scheme).get(paragraph)?.get('color')?.value
    expect([of('dark'), of('light'), of('dark')]).toEqual(['red', undefined, 'red'])
    expect(cascade(document, 'dark')).toBe(cascade(document, 'dark'))
  })
})

describe('support', () => {
  const of = (given: Given) =>
    lint(given)
      .findings.filter(({ id }) => id.startsWith('support-'))
      .map(({ id, cause, fix, location }) => ({ id, cause, fix, location }))

  test('names every client that lacks a feature, and the page that says so', () => {
    const found = of({ body: '<video></video><p style="position: fixed; accent-color: red">x</p>' })
    expect(found.map(({ id, cause }) => [id, /(?:support) ([^:]+):/.exec(cause)?.[1]]).sort()).toEqual([
      ['support-missing', '<video> element'],
      ['support-missing', 'accent-color'],
      ['support-missing', 'position'],
      ['support-partial', '<video> element'],
      ['support-partial', 'accent-color'],
      ['support-partial', 'position'],
    ])
    const named = found.flatMap(({ cause }) => cause.replace(/^.*: /, '').replace(/\.$/, '').split(', '))
    expect(new Set(named).size).toBe(14)
    expect(named).toEqual(expect.arrayContaining(['Gmail', 'Outlook on Windows', 'Apple Mail on iOS']))
    const position = found.find(({ cause }) => cause.startsWith('Mail clients do not support position'))
    expect(position?.fix).toMatch(/: https:\/\/www\.caniemail\.com\/features\/css-position\/$/)
    expect(position?.location).toEqual({ file: 'mails/mail.md', line: 4, column: 26 })
    expect(found.filter(({ cause }) => cause.includes('only partly support'))).toHaveLength(3)
  })

  test('is silent about features that a mail does not need, and about code that only MJML wrote', () => {
    const graceful =
      '<p style="border-radius:3px;cursor:pointer;outline:0;opacity:.5;word-break:break-all;font-weight:bold;text-decoration:none;letter-spacing:1px;text-transform:uppercase" dir="ltr" role="x" aria-label="x">x</p><a target="_blank">x</a>'
    expect(of({ body: graceful })).toEqual([])
    const html = '<html lang="en"><body><div style="position:fixed"><video></video></div></body></html>'
    expect(of({ html })).toEqual([])
    // The same words elsewhere are not the feature.
    expect(of({ html, source: 'my-position: x, a position of <videos>' })).toEqual([])
    expect(of({ html, source: 'position : fixed' })).toHaveLength(2)
    expect(of({ html, layout: 'x\n<video src="x">' }).map(({ location }) => location)).toEqual(
      Array(2).fill({ file: 'layouts/layout.mjml', line: 2, column: 1 }),
    )
  })

  test('treats only attributes of HTML’s own elements as the author’s', () => {
    const html = '<html lang="en"><body><p required>x</p></body></html>'
    expect(of({ html, source: '<mj-text required="">' })).toEqual([])
    expect(of({ html, source: '\n <p required="">' }).map(({ location }) => location)).toEqual(
      Array(2).fill({ file: 'mails/mail.md', line: 2, column: 2 }),
    )
  })
})
