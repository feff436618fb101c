import { GROUPS } from './settings.ts'
import { GROUP_MEANING, VARIABLES } from './table.ts'

/** A `.env.example`: every variable commented out, with what it is for. An empty environment is a valid one. */
export function exampleFile(): string {
  const groups = GROUPS.map((group) => {
    const { unlocks, absent } = GROUP_MEANING[group]
    const lines = VARIABLES.filter((variable) => variable.group === group).map(
      ({ name, summary, example, services, range }) =>
        `# ${summary} Read by ${services.join(', ')}.${range ? ` From ${range[0]} to ${range[1]}.` : ''}\n# ${name}=${/[\s<>#]/.test(example) ? `"${example}"` : example}`,
    )
    return `# --- ${group}: unlocks ${unlocks}.\n# When absent: ${absent}.\n\n${lines.join('\n')}\n`
  })
  return `# Every variable is optional; an error is given only for a half-configured group.\n# Check this file with: platformctl preflight --env-file .env\n\n${groups.join('\n')}`
}
