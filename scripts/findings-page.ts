import { ERRORS, LIVE_FINDINGS, WARNINGS } from '../src/core/env/explanations.ts'
import { LINT_RULES } from '../src/core/mail/lint/rules.ts'
import { learning } from '../src/presets/learning/platform.ts'

/** `docs/reference/findings.md`: every finding by its id, each with an anchor of its own. */
export function findingsPage(): string {
  const told = new Map<string, string>()
  const errors = [...learning.contract.rules]
    .sort((a, b) => a.id.localeCompare(b.id))
    .map(({ id, cause, fix }) => {
      const text = `${cause} ${fix}`
      const before = told.get(text)
      told.set(text, before ?? id)
      return `### ${id}\n\n${before === undefined ? text : `As [\`${before}\`](#${before}).`}`
    })
  const sections = Object.entries(WARNINGS)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([id, text]) => ({ id, section: `### ${id}\n\n${text}` }))
  const [others = [], warnings = []] = [true, false].map((isError) =>
    sections.flatMap(({ id, section }) => (ERRORS.has(id) === isError ? section : [])),
  )
  const live = Object.entries(LIVE_FINDINGS)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([id, { meaning, fix }]) => `### ${id}\n\n${meaning} ${fix}`)
  const mails = Object.entries(LINT_RULES)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([id, { severity, meaning }]) => `### ${id}\n\n${meaning} (${severity})`)
  return `${[
    '# Findings',
    '<!-- Made by `npm run make`. -->',
    '`platformctl env explain ID` prints the same. Ids are stable: match on them, not on the sentences.',
    '## Errors',
    'Half-configuration, the wildcard origin and a secret that cannot be read from its file; of your own definition also [`malformed-value`](#malformed-value) and the rules in it. `preflight` exits 1, and the daemon does not start.',
    ...errors,
    ...others,
    '## Warnings',
    'Shown, and no reason to fail except with `--strict`. `group-absent` is a notice: shown with `--notices` only.',
    ...warnings,
    '## Live checks',
    'Found by `preflight --deep` alone, which asks what is configured.',
    ...live,
    '## Mails',
    'Found by `platformctl email lint`.',
    ...mails,
  ].join('\n\n')}\n`
}
