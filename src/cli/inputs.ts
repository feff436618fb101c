import { InvalidArgumentError } from 'commander'
import { parseAddress } from '../core/address.ts'
import { DAY_MS } from '../core/durations.ts'
import { DIALECTS } from '../core/env/dialects/dialect.ts'
import { parseDuration } from '../core/env/values.ts'
import { nearestOf } from '../core/nearest.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { or } from '../core/sentences.ts'
import type { Service } from '../core/service.ts'
import { type CommandError, wrongUsage } from './context.ts'

/** An option or argument with a value of its own type; one that takes text, or a flag, is just its help. */
export interface Input<T> {
  readonly help: string
  /** `before`: the value so far, if the option is given again. */
  parse?(text: string, before?: T): T
  readonly byDefault?: T | undefined
  /** The default as one would type it. */
  readonly shown?: string | undefined
  readonly words?: readonly string[]
  /** What completion offers, although other words are taken too. Never an address of a person. */
  readonly offers?: (platform: ResolvedPlatform) => readonly string[]
  readonly required?: true
  readonly hidden?: true
}

/** Options (`-e, --env-file <file>`, `--no-webhook`) and arguments (`<file>`, `[command...]`) in the order of the help. */
export type Inputs = Readonly<Record<string, string | Input<unknown>>>

type Camel<Text extends string> = Text extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Text
type Name<Key extends string> = Key extends `-${string}, ${infer Long}`
  ? Name<Long>
  : Key extends `--no-${infer Flag}`
    ? Camel<Flag>
    : Key extends `--${infer Option} ${string}`
      ? Camel<Option>
      : Key extends `--${infer Flag}`
        ? Camel<Flag>
        : Key extends `<${infer Argument}>` | `[${infer Argument}...]` | `[${infer Argument}]`
          ? Camel<Argument>
          : never
type Value<Key extends string, Spec> =
  Spec extends Input<infer T>
    ? Key extends `<${string}`
      ? Exclude<T, undefined>
      : T
    : Key extends `--no-${string}`
      ? boolean
      : Key extends `[${string}...]`
        ? readonly string[]
        : Key extends `<${string}`
          ? string
          : Key extends `${string}<${string}` | `[${string}`
            ? string | undefined
            : true | undefined

/** What a command gets of its inputs: each under its long name in camel case. */
export type Values<Of extends Inputs> = {
  readonly [Key in keyof Of & string as Name<Key>]: Value<Key, Of[Key]>
}

export function value<T>(help: string, parse: (text: string) => T): Input<T | undefined>
export function value<T>(help: string, parse: (text: string) => T, byDefault: T, shown?: string): Input<T>
export function value<T>(help: string, parse: (text: string) => T, byDefault?: T, shown?: string) {
  return { help, parse, byDefault, shown }
}

export function required(help: string): Input<string>
export function required<T>(help: string, parse: (text: string) => T): Input<T>
export function required<T>(help: string, parse?: (text: string) => T) {
  return { help, required: true as const, ...(parse && { parse }) }
}

export const repeatable = (help: string): Input<readonly string[]> => ({
  help,
  parse: (text, before = []) => [...before, text],
  byDefault: [],
  shown: 'none',
})

export function choice<const Word extends string>(
  help: string,
  words: readonly Word[],
  { kind = 'format', listAlways = false } = {},
): Input<Word | undefined> {
  return {
    help,
    words,
    parse(name) {
      const found = words.find((word) => word === name)
      if (found === undefined) throw unknownName({ kind, name, known: words, listAlways })
      return found
    },
  }
}

/** `--format`: the first of these words is the default. */
export const format = <const Word extends string>(...all: readonly [Word, ...Word[]]) => ({
  '--format <format>': { ...(choice('how the result is written', all) as Input<Word>), byDefault: all[0] },
})

/** Some of these words, repeatable or separated by commas; given in the order of `known`. */
export function words<const Word extends string>(
  help: string,
  kind: string,
  known: readonly Word[],
): Input<readonly Word[] | undefined> {
  return {
    help,
    offers: () => known,
    parse(text, before = []) {
      const named = text.split(',').map((word) => word.trim())
      for (const name of named)
        if (!known.some((word) => word === name)) throw unknownName({ kind, name, known })
      return known.filter((word) => before.includes(word) || named.includes(word))
    },
  }
}

export const course = (help: string): Input<string | undefined> => ({
  help,
  offers: ({ courses }) => courses.map(({ id }) => id),
})

/** The same wherever an environment is read. Node reads the long name itself; not `-e`. */
export const ENV_FILE = {
  '-e, --env-file <file>': repeatable(
    'an env file; repeatable, a later one wins, the process environment wins over all',
  ),
} as const

export const TOKEN = {
  '--token-env <name>': 'the variable that holds the token for deep checks (default: HEALTH_DEEP_TOKEN)',
  '--token-file <file>': 'a file that holds the token',
} as const

export const STATUS_TARGET =
  'a folder, or the address of a bucket of S3-compatible storage with S3_KEY, S3_SECRET and S3_REGION set'

export const STORE = {
  '--data <folder>': 'the data folder, when STORE_URL is not set (default: .platformctl)',
  ...ENV_FILE,
} as const

export const serviceInput = (services: readonly Service[]) => ({
  '--service <service>': words(`${or(services)}; repeatable; all when not given`, 'service', services),
})

export const READERS = {
  '--dialect <reader>': choice('read the files as this reader would', DIALECTS, { kind: 'reader' }),
  '--readers <list>': words(
    'warn where these readers of the files would disagree (default: node,compose,docker,systemd)',
    'reader',
    DIALECTS,
  ),
} as const

const numberWithin = (form: RegExp, what: string) => (low: number, high: number) => (text: string) => {
  const number = form.test(text) ? Number(text) : Number.NaN
  if (number >= low && number <= high) return number
  throw new InvalidArgumentError(`A ${what} from ${low} to ${high} is needed.`)
}

export const wholeNumber = numberWithin(/^\d{1,15}$/, 'whole number')

export const port = wholeNumber(0, 65_535)

export const seconds = numberWithin(/\S/, 'number of seconds')

/** `30m`, `1h30m` in milliseconds, of at most `most`. */
export const durationUpTo = (most: number, fault: string) => (text: string) => {
  const ms = parseDuration(text) ?? 0
  if (ms > 0 && ms <= most) return ms
  throw new InvalidArgumentError(fault)
}

const upToADay = durationUpTo(DAY_MS, 'A duration such as 500ms, 60s or 2m is needed, of at most 24h.')

/** `500ms`, `5s`, `1h30m`; a bare number is seconds. */
export const duration = (text: string) => upToADay(/^[\d.]+$/.test(text) ? `${text}s` : text)

/** Text of 1 to `most` characters, without white space around it. Control characters and, unless `lines`, line ends become spaces. */
export function text(most: number, fault: string, { lines = false } = {}): (text: string) => string {
  return (given) => {
    const said = given
      .replaceAll('\r\n', '\n')
      .replaceAll(lines ? /(?!\n)\p{Cc}/gu : /[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
      .trim()
    if (INVISIBLE.test(said) || said.length > most) throw new InvalidArgumentError(fault)
    return said
  }
}

/** Nothing that a reader sees. */
const INVISIBLE = /^[\s\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]*$/u

/** A person's address; anything else is wrong usage. `option` begins the sentence. */
export function addressOf(text: string, option = '') {
  const parsed = parseAddress(text)
  if (!parsed.ok) throw wrongUsage(`${option}${parsed.reason}.`)
  return parsed
}

export const reason = text(200, 'A reason of 1 to 200 characters is needed.')

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
  return wrongUsage(`unknown ${kind} '${name}'. ${near === undefined ? otherwise : `Did you mean ${near}?`}`)
}
