import type { Contract } from '../../src/core/env/contract.ts'

/** docs/reference/variables.md: made from the contract's table. */
export function referencePage(contract: Contract): string {
  const groups = contract.groups.map(({ name: group, unlocks, absent, variables, rules }) => {
    const rows = variables.map(
      ({ name, services, summary, secret }) =>
        `| \`${name}\` | ${services.join(', ')} | ${secret ? 'yes' : ''} | ${summary} |`,
    )
    const errors = rules.map(({ id }) => `[\`${id}\`](findings.md#${id})`).join(', ')
    return [
      `## ${group}`,
      `Unlocks ${unlocks}. When absent: ${absent}.`,
      `| Variable | Read by | Secret | What it is |\n|---|---|---|---|\n${rows.join('\n')}`,
      ...(rules.length === 0 ? [] : [`Errors: ${errors}`]),
    ].join('\n\n')
  })
  return `${[
    '# Variables',
    'Those of the default platform; `platformctl env list` shows yours. Made from `src/presets` by `npm run make`; not edited by hand.',
    `None of the ${contract.variables.length} variables is required. Unset, empty and white space mean the same: absent. A malformed value behaves as absent.`,
    'For each secret, `NAME_FILE` may name a file that holds the value, as Docker and Kubernetes mount secrets: one newline at its end is removed. Only the commands of platformctl read these files; `openPlatform` takes its environment as it is.',
    ...groups,
  ].join('\n\n')}\n`
}
