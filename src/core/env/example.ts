import type { Contract, Variable } from './contract.ts'

/** A `.env.example`: every variable commented out, with what it is for. An empty environment is a valid one. */
export function exampleFile(contract: Contract): string {
  const groups = contract.groups.map(
    ({ name, unlocks, absent, variables }) =>
      `# --- ${name}: unlocks ${unlocks}.\n# When absent: ${absent}.\n\n${variables.map(block).join('\n')}\n`,
  )
  return `# Every variable is optional; an error is given only for a half-configured group.\n# Check this file with: platformctl preflight --env-file .env\n\n${groups.join('\n')}`
}

/** A summary may be written with its full stop or without. */
function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

function block({ name, summary, example, services, range, of, default: unset }: Variable): string {
  const sentences = [
    summary && sentence(summary),
    `Read by ${services.join(', ')}.`,
    range ? `From ${range[0]} to ${range[1]}.` : '',
    of ? `One of ${of.join(', ')}.` : '',
    unset === undefined ? '' : `Default: ${unset}.`,
  ]
  return `# ${sentences.filter(Boolean).join(' ')}\n# ${name}=${/[\s<>#]/.test(example) ? `"${example}"` : example}`
}
