import { Argument, Option } from 'commander'
import { closestMatch } from 'leven'
import { CommandError, EXIT } from './exit.ts'

/** `unknown template 'weclome'. Did you mean welcome?`: the one form in which a mistyped name is answered. */
export function unknownName(input: {
  readonly kind: string
  readonly name: string
  readonly known: readonly string[]
  /** What to do when no known name is close; by default the names are listed. */
  readonly otherwise?: string
}): CommandError {
  const { kind, name, known, otherwise = `Choose one of ${known.join(', ')}.` } = input
  const near = nearest(name, known)
  return new CommandError(
    EXIT.usage,
    `unknown ${kind} '${name}'. ${near === undefined ? otherwise : `Did you mean ${near}?`}`,
  )
}

/** At most a third of a name is mistyped; two slips in a short one are a swap (`deom`). */
function nearest(name: string, known: readonly string[]): string | undefined {
  const folded = name.toLowerCase()
  const byFolded = new Map(known.map((one) => [one.toLowerCase(), one]))
  const maxDistance = Math.max(folded.length < 3 ? 1 : 2, Math.floor(folded.length / 3))
  const close = closestMatch(folded, [...byFolded.keys()], { maxDistance })
  const begun = [...byFolded.keys()].find((one) => folded.length > 3 && one.startsWith(folded))
  return byFolded.get(close ?? begun ?? '')
}

/** An option that takes one of these words. */
export function choiceOption<Choice extends string>(
  flags: string,
  description: string,
  { kind, choices }: { readonly kind: string; readonly choices: readonly Choice[] },
): Option {
  const option = new Option(flags, description).choices(choices)
  return option.argParser(oneOf(kind, choices))
}

/** An argument that is one of these words. */
export function choiceArgument<Choice extends string>(
  name: string,
  description: string,
  { kind, choices }: { readonly kind: string; readonly choices: readonly Choice[] },
): Argument {
  const argument = new Argument(name, description).choices(choices)
  return argument.argParser(oneOf(kind, choices))
}

function oneOf<Choice extends string>(kind: string, choices: readonly Choice[]): (name: string) => Choice {
  return (name) => {
    const found = choices.find((choice) => choice === name)
    if (found === undefined) throw unknownName({ kind, name, known: choices })
    return found
  }
}
