import type { Contract } from '../../src/core/env/contract.ts'
import { LIVE_FINDINGS, WARNINGS } from '../../src/core/env/explanations.ts'

/** docs/reference/variables.md: made from the contract's table and rules. */
export function referencePage(contract: Contract): string {
  const groups = contract.groups.map(({ name: group, unlocks, absent, ...of }) => {
    const rows = of.variables.map(
      ({ name, services, summary, secret }) =>
        `| \`${name}\` | ${services.join(', ')} | ${secret ? 'yes' : ''} | ${summary} |`,
    )
    const rules = of.rules.map((rule) => `- \`${rule.id}\`: ${rule.cause} ${rule.fix}`)
    const errors = rules.length === 0 ? '' : `\nErrors:\n\n${rules.join('\n')}\n`
    return `## ${group}\n\nUnlocks ${unlocks}. When absent: ${absent}.\n\n| Variable | Read by | Secret | What it is |\n|---|---|---|---|\n${rows.join('\n')}\n${errors}`
  })
  const warnings = Object.entries(WARNINGS).map(([id, text]) => `| \`${id}\` | ${text} |`)
  const live = Object.entries(LIVE_FINDINGS).map(
    ([id, { meaning, fix }]) => `| \`${id}\` | ${meaning} ${fix} |`,
  )
  return `# Variables and findings\n\nThose of the default platform; \`platformctl env list\` shows yours. Made from \`src/presets\` by \`npm run make\`; not edited by hand.\n\nNone of the ${contract.variables.length} variables is required. Unset, empty and white space mean the same: absent. A malformed value behaves as absent.\n\nFor each secret, \`NAME_FILE\` may name a file that holds the value, as Docker and Kubernetes mount secrets: one newline at its end is removed. Only the commands of platformctl read these files; \`openPlatform\` takes its environment as it is.\n\n${groups.join('\n')}\n## Warnings\n\n| Finding | What it means |\n|---|---|\n${warnings.join('\n')}\n\n## Live checks (\`platformctl preflight --deep\`)\n\n| Finding | What it means, and the fix |\n|---|---|\n${live.join('\n')}\n`
}
