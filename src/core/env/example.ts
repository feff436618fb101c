import type { Contract, Variable } from './contract.ts'
import type { Requirement } from './definition.ts'
import { whenRequired } from './rule.ts'

/** A `.env.example`: every variable commented out, with what it is for and when it is required. */
export function exampleFile(contract: Contract): string {
  const groups = contract.groups.map(
    ({ name, unlocks, absent, required, always, variables }) =>
      `# --- ${name}: unlocks ${unlocks}.\n# ${always ? 'Always on' : `When absent: ${absent}`}.${needed(required, ' ')}\n\n${variables.map(block).join('\n')}\n`,
  )
  const isFree = contract.rules.every(({ kind }) => kind !== 'required')
  return `# ${isFree ? 'Every variable is optional' : 'Every variable is optional, unless it says that it is required'}; an error is given only for a half-configured group.\n# Check this file with: platformctl preflight --env-file .env\n\n${groups.join('\n')}`
}

/** `Required in production.`, or nothing. */
function needed(required: Requirement | undefined, before = ''): string {
  return required === undefined ? '' : `${before}Required${whenRequired(required)}.`
}

/** A summary may be written with its full stop or without. */
function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

function block({ name, summary, example, required, services, range, of, default: unset }: Variable): string {
  const sentences = [
    summary && sentence(summary),
    needed(required),
    `Read by ${services.join(', ')}.`,
    range ? `From ${range[0]} to ${range[1]}.` : '',
    of ? `One of ${of.join(', ')}.` : '',
    unset === undefined ? '' : `Default: ${unset}.`,
  ]
  return `# ${sentences.filter(Boolean).join(' ')}\n# ${name}=${/[\s<>#]/.test(example) ? `"${example}"` : example}`
}
