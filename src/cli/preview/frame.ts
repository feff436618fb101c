import { escapeHtml } from '../../core/mail/render.ts'
import { directionOf } from '../../core/messages/messages.ts'
import { PREVIEW_TEXTS as T } from './texts.ts'

const PLACES = { mails: '/', courses: '/courses', languages: '/languages' } as const

/** Links to the pages of the preview, the one that is open marked. */
export function pageLinks(open: keyof typeof PLACES): string {
  const links = Object.entries(PLACES).map(
    ([name, path]) =>
      `<a href="${path}"${name === open ? ' aria-current="page"' : ''}>${T.pages[name as keyof typeof PLACES]}</a>`,
  )
  return `<nav class="pages" aria-label="${T.preview}">${links.join('')}</nav>`
}

/** A text with its `{names}` filled in, escaped for HTML. */
export function filled(text: string, parts: Readonly<Record<string, string | number>> = {}): string {
  return escapeHtml(text.replaceAll(/\{(\w+)\}/g, (all, name) => String(parts[name] ?? all)))
}

/** A text in a language of its own, in its direction. */
export function textIn(language: string, text: string): string {
  return `<bdi lang="${escapeHtml(language)}" dir="${directionOf(language)}">${escapeHtml(text)}</bdi>`
}

/** A `select` with its label. */
export function selectField(field: {
  readonly name: string
  readonly label: string
  readonly chosen: string
  readonly groups: readonly {
    readonly label?: string
    readonly options: readonly (readonly [string, string])[]
  }[]
}): string {
  const { name, label, chosen, groups } = field
  const options = groups.map(({ label, options }) => {
    const all = options.map(
      ([value, text]) =>
        `<option value="${escapeHtml(value)}"${value === chosen ? ' selected' : ''}>${escapeHtml(text)}</option>`,
    )
    return label === undefined
      ? all.join('')
      : `<optgroup label="${escapeHtml(label)}">${all.join('')}</optgroup>`
  })
  return `<p class="field"><label for="${name}">${escapeHtml(label)}</label><select id="${name}" name="${name}">${options.join('')}</select></p>`
}

/** Attributes for a page's form, with the texts that its script shows after a save. */
export function followed(): string {
  return ` data-saved="${escapeHtml(T.saved)}" data-ended="${escapeHtml(T.ended)}"`
}
