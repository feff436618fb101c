import { type CssStylesheetAST, parse } from '@adobe/css-tools'
import { selectAll } from 'css-select'
import { type AnyNode, type Document, type Element, isTag, isText, type ParentNode } from 'domhandler'
import { perObject } from '../../calls.ts'
import { attempt } from '../../is-record.ts'

export type Scheme = 'light' | 'dark'

interface Declared {
  readonly value: string
  /** Higher wins; equal, the later one (CSS Cascade 4 §6). */
  readonly weight: number
}

type Styles = Map<Element, Map<string, Declared>>

const INLINE = 1_000_000
const IMPORTANT = 10_000_000

/** The styles that a mail declares for each element in one color scheme, as far as a mail's style sheet goes. */
function styled(document: Document, scheme: Scheme): Styles {
  const styles: Styles = new Map()
  const declare = (element: Element, property: string, value: string, weight: number) => {
    const known = styles.get(element) ?? new Map<string, Declared>()
    styles.set(element, known)
    const important = /\s*!important\s*$/i.test(value)
    const entry = {
      value: value.replace(/\s*!important\s*$/i, ''),
      weight: weight + (important ? IMPORTANT : 0),
    }
    if (entry.weight >= (known.get(property)?.weight ?? Number.NEGATIVE_INFINITY)) known.set(property, entry)
  }
  for (const element of elements(document)) {
    if (element.attribs.bgcolor) declare(element, 'background-color', element.attribs.bgcolor, -1)
    if (element.name === 'font' && element.attribs.color) declare(element, 'color', element.attribs.color, -1)
    if (element.name === 'style' && applies(element.attribs.media ?? '', scheme)) {
      const { rules } = parse(ownText(element), { silent: true }).stylesheet
      for (const { selector, property, value } of declarationsOf(rules, scheme))
        for (const matched of matches(selector, document))
          declare(matched, property, value, specificity(selector))
    }
  }
  for (const element of elements(document))
    for (const declaration of (element.attribs.style ?? '').split(';')) {
      const colon = declaration.indexOf(':')
      const property = declaration.slice(0, colon).trim().toLowerCase()
      if (colon > 0) declare(element, property, declaration.slice(colon + 1).trim(), INLINE)
    }
  return styles
}

/** Several checks ask for the same. */
const computed = {
  light: perObject((document: Document) => styled(document, 'light')),
  dark: perObject((document: Document) => styled(document, 'dark')),
}
export const cascade = (document: Document, scheme: Scheme): Styles => computed[scheme](document)

export function* elements(node: ParentNode): Generator<Element> {
  for (const child of node.children) {
    if (!isTag(child)) continue
    yield child
    yield* elements(child)
  }
}

export const ownText = (element: Element) =>
  element.children.map((child) => (isText(child) ? child.data : '')).join('')

/** All text below a node, style sheets and titles aside. */
export function textOf(node: ParentNode): string {
  return node.children
    .map((child) =>
      isText(child) ? child.data : isTag(child) && child.name !== 'style' ? textOf(child) : '',
    )
    .join('')
}

type Rule = CssStylesheetAST['stylesheet']['rules'][number] | { readonly type: 'declaration' }

function* declarationsOf(
  rules: readonly object[],
  scheme: Scheme,
): Generator<Readonly<Record<'selector' | 'property' | 'value', string>>> {
  // The parser's type leaves out declarations directly in a @media block; skip them.
  for (const rule of rules as readonly Rule[]) {
    if ('media' in rule && 'rules' in rule && typeof rule.media === 'string') {
      if (applies(rule.media, scheme)) yield* declarationsOf(rule.rules, scheme)
    } else if ('selectors' in rule && 'declarations' in rule)
      for (const declaration of rule.declarations) {
        if (!('property' in declaration)) continue
        for (const selector of rule.selectors)
          yield { selector, property: declaration.property.toLowerCase(), value: declaration.value }
      }
  }
}

/** Widths are taken to match: colours rarely depend on them, and where they do both widths deserve a look. */
function applies(media: string, scheme: Scheme): boolean {
  if (/\bprint\b/.test(media)) return false
  const wanted = /prefers-color-scheme\s*:\s*(light|dark)/.exec(media)?.[1]
  return wanted === undefined || wanted === scheme
}

/** A selector for one client's quirks (`:-ms-…`) matches nothing elsewhere. */
const matches = (selector: string, document: Document): readonly Element[] =>
  attempt(() => selectAll<AnyNode, Element>(selector, document)) ?? []

function specificity(selector: string): number {
  const count = (pattern: RegExp) => selector.match(pattern)?.length ?? 0
  return (
    count(/#[\w-]+/g) * 10_000 +
    count(/\.[\w-]+|\[[^\]]*\]|:(?!:)[\w-]+/g) * 100 +
    count(/(?:^|[\s>+~])[a-z][\w-]*/gi)
  )
}
