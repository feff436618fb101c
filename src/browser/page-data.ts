/** The data that the page carries for its script, in its one JSON block. */
export function pageData<Data>(): Data {
  // The server wrote both page and script, so the block has the form that the script expects.
  return JSON.parse(document.querySelector('script[type="application/json"]')?.textContent ?? 'null') as Data
}
