import type { Contract } from '../../src/core/env/contract.ts'

/** docs/reference/variables.md: made from the contract's table. */
export function referencePage(contract: Contract): string {
  const groups = contract.groups.map(({ name: group, unlocks, absent, variables, rules }) => {
    const readersOf = ({ services }: (typeof variables)[number]) =>
      services.length === contract.services.length ? 'all' : services.join(', ')
    const readers = new Set(variables.map(readersOf))
    const rows = variables.map((variable) => {
      const { name, summary, secret } = variable
      const cells = [`\`${name}\``, ...(readers.size === 1 ? [] : [readersOf(variable)])]
      return `| ${[...cells, secret ? 'yes' : '', summary].join(' | ')} |`
    })
    const errors = rules.map(({ id }) => `[\`${id}\`](findings.md#${id})`).join(', ')
    return [
      `## ${group}`,
      `Unlocks ${unlocks}. When absent: ${absent}.${readers.size === 1 ? ` Read by ${[...readers][0]}.` : ''}`,
      readers.size === 1
        ? `| Variable | Secret | What it is |\n|---|---|---|\n${rows.join('\n')}`
        : `| Variable | Read by | Secret | What it is |\n|---|---|---|---|\n${rows.join('\n')}`,
      ...(rules.length === 0 ? [] : [`Errors: ${errors}`]),
    ].join('\n\n')
  })
  return `${[
    '# Variables',
    '<!-- Made by `npm run make`. -->',
    'These are the variables of the default platform; `platformctl env list` shows yours. How quotes and `$` are read: [settings](../guides/faq.md#settings). The process environment wins over env files, and a later `--env-file` over an earlier one.',
    '`HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` (also from an env file) apply to [what leaves over HTTP](health.md#platformctl-health); SMTP and PostgreSQL connect directly.',
    `None of the ${contract.variables.length} variables is required. Unset, empty and white space mean the same: absent. A malformed value behaves as absent.`,
    'For each secret, `NAME_FILE` may name a file that holds the value, as Docker and Kubernetes mount secrets: one newline at its end is removed. Only the commands of platformctl read these files; `openPlatform` takes its environment as it is.',
    ...groups,
  ].join('\n\n')}\n`
}
