import { Argument, Option } from 'commander'
import { nearestOf } from '../core/nearest.ts'
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
  const near = nearestOf(name, known)
  return new CommandError(
    EXIT.usage,
    `unknown ${kind} '${name}'. ${near === undefined ? otherwise : `Did you mean ${near}?`}`,
  )
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
