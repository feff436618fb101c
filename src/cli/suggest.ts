import { Argument, Option } from 'commander'
import { nearestOf } from '../core/nearest.ts'
import { CommandError, EXIT } from './exit.ts'

/** `unknown template 'weclome'. Did you mean welcome?`: the one form in which a mistyped name is answered. */
export function unknownName(input: {
  readonly kind: string
  readonly name: string
  readonly known: readonly string[]
  /** Set where a close name is no likely slip, as with `tcsh` and bash: then the names are always listed. */
  readonly listAlways?: boolean
  /** The next step if no known name is close; by default, the list of names. */
  readonly otherwise?: string
}): CommandError {
  const { kind, name, known, listAlways, otherwise = `Choose one of ${known.join(', ')}.` } = input
  const near = listAlways ? undefined : nearestOf(name, known)
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
  {
    kind,
    choices,
    listAlways,
  }: { readonly kind: string; readonly choices: readonly Choice[]; readonly listAlways?: boolean },
): Argument {
  const argument = new Argument(name, description).choices(choices)
  return argument.argParser(oneOf(kind, choices, listAlways))
}

function oneOf<Choice extends string>(
  kind: string,
  choices: readonly Choice[],
  listAlways = false,
): (name: string) => Choice {
  return (name) => {
    const found = choices.find((choice) => choice === name)
    if (found === undefined) throw unknownName({ kind, name, known: choices, listAlways })
    return found
  }
}
