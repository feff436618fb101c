import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** The package that a bundled module is of, as a folder; undefined for modules of our own. */
function packageFolder(module: string): string | undefined {
  const parts = module.split(path.sep)
  const at = parts.lastIndexOf('node_modules')
  if (at < 0) return undefined
  return parts.slice(0, at + (parts[at + 1]?.startsWith('@') ? 3 : 2)).join(path.sep)
}

/**
 * The licences of what is bundled into dist, in full, as they ask. Packages under `dependencies` are installed beside
 * us and bring their own.
 */
export function thirdPartyNotices(modules: Iterable<string>): string {
  const folders = new Set([...modules].map(packageFolder).filter((folder) => folder !== undefined))
  const packages = [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(path.join(folder, 'package.json'), 'utf8'),
    ) as {
      name: string
      version: string
      license?: string
    }
    const file = readdirSync(folder).find((one) => /^(?:licen[cs]e|copying)(?:[.-]|$)/i.test(one))
    const text =
      file !== undefined && existsSync(path.join(folder, file))
        ? readFileSync(path.join(folder, file), 'utf8')
        : undefined
    if (license === undefined && text === undefined) throw new Error(`${name} says nothing about its licence`)
    return { name, version, license: license ?? 'see below', text: text?.replaceAll('\r\n', '\n').trim() }
  })
  packages.sort((a, b) => a.name.localeCompare(b.name))
  const terms = new Map<string, string>()
  /** A licence's terms once: the copyright stays with each package, the same words after it are named. */
  const noticeOf = ({ name, version, text }: (typeof packages)[number]) => {
    if (text === undefined) return 'The package brings no text of its own.'
    const begin = text.search(
      /^(?:Permission (?:is hereby granted|to use, copy)|Redistribution and use|[ \t]*Apache License$)/m,
    )
    if (begin < 0) return text
    const words = text
      .slice(begin)
      .replace(/\s+/g, ' ')
      .replace(/["'`’‘]/g, '"')
    const before = terms.get(words)
    if (before !== undefined) return `${text.slice(0, begin)}The rest is, word for word, as under ${before}.`
    terms.set(words, `${name} ${version}`)
    return text
  }
  return `${[
    'The files in this folder contain code of these packages, each under its own licence.',
    ...packages.map(
      (one) => `${'-'.repeat(80)}\n${one.name} ${one.version} (${one.license})\n\n${noticeOf(one)}`,
    ),
  ].join('\n\n')}\n`
}
