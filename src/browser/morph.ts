/** Attributes that belong to the reader and the page's script, whatever the server writes. */
const KEPT = ['aria-valuenow', 'aria-valuetext']

/**
 * Makes `old` like `next` and keeps its nodes, so that focus, selection, scroll position and what was typed stay as they
 * are. Elements are the same by their id or line, and without one by their place. `isOwn` says whose `open` the reader decides.
 */
export function morph(old: Element, next: Element, isOwn: (element: Element) => boolean): void {
  const keeps = (name: string) => KEPT.includes(name) || (name === 'open' && isOwn(old))
  for (const { name } of [...old.attributes])
    if (!next.hasAttribute(name) && !keeps(name)) old.removeAttribute(name)
  for (const { name, value } of next.attributes)
    if (old.getAttribute(name) !== value && !keeps(name)) old.setAttribute(name, value)

  const byKey = new Map([...old.children].map((one) => [keyOf(one), one] as const))
  let at = old.firstChild
  for (const wanted of [...next.childNodes]) {
    const found = keyOf(wanted) === '' ? (at && isAlike(at, wanted) ? at : null) : byKey.get(keyOf(wanted))
    if (!found) {
      old.insertBefore(wanted, at)
      continue
    }
    if (found === at) at = at.nextSibling
    else old.insertBefore(found, at)
    if (found instanceof Element && wanted instanceof Element) morph(found, wanted, isOwn)
    else if (found.nodeValue !== wanted.nodeValue) found.nodeValue = wanted.nodeValue
  }
  while (at) {
    const rest = at.nextSibling
    at.remove()
    at = rest
  }
}

const keyOf = (node: Node) =>
  node instanceof Element ? node.id || (node.getAttribute('data-line') ?? '') : ''
const isAlike = (one: Node, other: Node) => one.nodeName === other.nodeName && keyOf(one) === ''
