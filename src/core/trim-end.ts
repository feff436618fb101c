/** A text without this character at its end. An expression such as `/x+$/` would look at each run of it once a start. */
export function trimEnd(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end -= 1
  return text.slice(0, end)
}

/** An address with a path behind that of its root. */
export function addressUnder(root: string, path: string, search = ''): URL {
  const url = new URL(root)
  url.pathname = `${trimEnd(url.pathname, '/')}${path}`
  url.search = search
  return url
}
