/** A text without this character at its end. An expression such as `/x+$/` would look at each run of it once a start. */
export function trimEnd(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end -= 1
  return text.slice(0, end)
}
