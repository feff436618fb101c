/**
 * Runs in the pages of courses and languages: plain JavaScript, because the preview is served without a build. A choice
 * goes into the address, and a save loads what the address says again; neither moves the place or the focus.
 */
export const FOLLOW = `
const form = document.getElementById('choice'), status = document.getElementById('status')
let turn = 0
const fit = (frame) => {
  const height = () => {
    const top = scrollY
    frame.style.height = '0'
    frame.style.height = frame.contentDocument.documentElement.scrollHeight + 'px'
    scrollTo(0, top)
  }
  frame.onload = height
  if (frame.contentDocument?.readyState === 'complete') height()
}
/* Without the style, whose nonce is another page's. */
const parsed = (text) => {
  const part = (name) => text.slice(text.indexOf('<' + name + '>'), text.indexOf('</' + name + '>'))
  return new DOMParser().parseFromString(part('title') + '</title>' + part('main'), 'text/html')
}
async function load(address) {
  const mine = ++turn
  const page = parsed(await (await fetch(address)).text())
  if (mine !== turn) return
  const next = page.getElementById('shown'), old = document.getElementById('shown')
  if (!next) { location.reload(); return }
  const heights = [...old.querySelectorAll('iframe')].map((frame) => frame.style.height)
  old.replaceWith(next)
  next.querySelectorAll('iframe').forEach((frame, index) => { frame.style.height = heights[index] ?? ''; fit(frame) })
  document.title = page.title
  for (const field of form.querySelectorAll('input, select')) {
    const fresh = page.getElementById(field.id)
    for (const name of ['aria-invalid', 'aria-describedby']) fresh?.hasAttribute(name) ? field.setAttribute(name, fresh.getAttribute(name)) : field.removeAttribute(name)
  }
}
if (form) {
  document.querySelectorAll('iframe').forEach(fit)
  const chosen = () => location.pathname + '?' + new URLSearchParams(new FormData(form))
  const choose = () => { history.replaceState(null, '', chosen()); load(chosen()).catch(ended) }
  form.onchange = choose
  form.onsubmit = (event) => { event.preventDefault(); choose() }
  const ended = () => { status.textContent = form.dataset.ended }
  const events = new EventSource('/events')
  events.onmessage = (event) => {
    const names = JSON.parse(event.data)
    load(chosen()).then(() => { status.textContent = form.dataset.saved.replace('{names}', names.length > 3 ? names.length + ' mails' : names.join(', ')) }, ended)
  }
  events.onerror = ended
}
`
