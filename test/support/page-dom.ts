import { is, selectAll, selectOne } from 'css-select'
import { type AnyNode, Element as Tag, Text } from 'domhandler'
import { DomUtils, parseDocument } from 'htmlparser2'
import { vi } from 'vitest'

const known = new WeakMap<AnyNode, PageNode>()
const wrap = (raw: AnyNode): PageNode => {
  const found = known.get(raw) ?? (raw instanceof Tag ? new PageElement(raw) : new PageNode(raw))
  known.set(raw, found)
  return found
}
const elements = (nodes: readonly AnyNode[]) =>
  nodes.flatMap((one) => (one instanceof Tag ? [wrap(one) as PageElement] : []))

class PageNode {
  readonly raw: AnyNode
  constructor(raw: AnyNode) {
    this.raw = raw
  }
  get nodeName() {
    return this.raw instanceof Tag ? this.raw.name : '#text'
  }
  get nodeValue() {
    return this.raw instanceof Text ? this.raw.data : null
  }
  set nodeValue(value) {
    if (this.raw instanceof Text) this.raw.data = value ?? ''
  }
  get nextSibling() {
    return this.raw.next && wrap(this.raw.next)
  }
  remove() {
    DomUtils.removeElement(this.raw)
  }
}

/** An element, as far as the scripts of pages use one. It has no size, and its look is not known. */
class PageElement extends PageNode {
  declare readonly raw: Tag
  readonly style = {}
  readonly offsetWidth = 0
  readonly offsetHeight = 0
  readonly classList = { add: (name: string) => this.setAttribute('class', name) }
  get children() {
    return elements(this.raw.children)
  }
  get childNodes() {
    return this.raw.children.map(wrap)
  }
  get firstChild() {
    return this.childNodes[0] ?? null
  }
  get firstElementChild() {
    return this.children[0] ?? null
  }
  get attributes() {
    return Object.entries(this.raw.attribs).map(([name, value]) => ({ name, value }))
  }
  get textContent() {
    return DomUtils.textContent(this.raw)
  }
  set textContent(text: string) {
    this.raw.children = []
    DomUtils.appendChild(this.raw, new Text(text))
  }
  get dataset(): Readonly<Record<string, string | undefined>> {
    return new Proxy({}, { get: (_, name) => this.getAttribute(`data-${String(name)}`) ?? undefined })
  }
  getAttribute = (name: string) => this.raw.attribs[name] ?? null
  hasAttribute = (name: string) => name in this.raw.attribs
  setAttribute(name: string, value: string) {
    this.raw.attribs[name] = value
  }
  removeAttribute(name: string) {
    delete this.raw.attribs[name]
  }
  querySelectorAll = (selector: string) => elements(selectAll<AnyNode, Tag>(selector, this.raw.children))
  querySelector(selector: string) {
    const found = selectOne<AnyNode, Tag>(selector, this.raw.children)
    // What is selected is an element.
    return found && (wrap(found) as PageElement)
  }
  matches(selector: string): boolean {
    return selector === ':focus-visible' || is<AnyNode, Tag>(this.raw, selector)
  }
  closest(selector: string): PageElement | null {
    const above = this.raw.parent
    return this.matches(selector)
      ? this
      : above instanceof Tag
        ? (wrap(above) as PageElement).closest(selector)
        : null
  }
  append(...nodes: PageNode[]) {
    for (const { raw } of nodes) DomUtils.appendChild(this.raw, raw)
  }
  insertBefore(node: PageNode, before: PageNode | null) {
    if (before) DomUtils.prepend(before.raw, node.raw)
    else this.append(node)
  }
  getBoundingClientRect = () => ({ left: 0, top: 0, bottom: 0, width: 0 })
}
/** Properties that are attributes. */
for (const [name, attribute = name] of [
  ['id'],
  ['href'],
  ['title'],
  ['className', 'class'],
  ['dateTime', 'datetime'],
])
  Object.defineProperty(PageElement.prototype, String(name), {
    get(this: PageElement) {
      return this.getAttribute(String(attribute)) ?? ''
    },
    set(this: PageElement, value: string) {
      this.setAttribute(String(attribute), value)
    },
  })
for (const name of ['hidden', 'open'])
  Object.defineProperty(PageElement.prototype, name, {
    get(this: PageElement) {
      return this.hasAttribute(name)
    },
    set(this: PageElement, value: boolean) {
      if (value) this.setAttribute(name, '')
      else this.removeAttribute(name)
    },
  })

const documentOf = (html: string) =>
  wrap(new Tag('#document', {}, parseDocument(html).children)) as PageElement

/** Opens a page for its script, without Chromium: what the script asks for is answered by `fetch`. */
export function openPage(html: string, fetch: (target: string) => Promise<Response>) {
  const listeners = new Map<string, ((event: object) => void)[]>()
  const root = documentOf(html)
  const create = (_: string, name = _) => wrap(new Tag(name, {}))
  const globals = {
    ...{ Node: PageNode, Element: PageElement, HTMLElement: PageElement, SVGElement: class {} },
    ...{ innerWidth: 1000, scrollX: 0, scrollY: 0, fetch, location: { href: '/' } },
    DOMParser: class {
      parseFromString = documentOf
    },
    document: Object.assign(root, {
      ...{ body: root.querySelector('body'), activeElement: null, visibilityState: 'visible' },
      createElement: (name: string) => create(name),
      createElementNS: create,
      addEventListener(name: string, listener: (event: object) => void) {
        listeners.set(name, [...(listeners.get(name) ?? []), listener])
      },
    }),
  }
  for (const [name, value] of Object.entries(globals)) vi.stubGlobal(name, value)
  return {
    page: root,
    fire(name: string, event: object) {
      for (const listener of listeners.get(name) ?? []) listener({ preventDefault() {}, ...event })
    },
  }
}
