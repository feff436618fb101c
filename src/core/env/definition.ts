import type { Kind, StandardSchema } from './kinds.ts'

/** The language in which a platform's environment is described: the same in a preset and in `platform.config.ts`. */

/** Names of services, or `all`: every service of the platform. */
export type Readers = readonly string[] | 'all'

/** When absence is an error: always, while DEPLOY_ENVIRONMENT is production, or while a variable or a group is set. */
export type Requirement = true | 'production' | { readonly when: string }

export interface VariableDefinition {
  readonly kind: Kind
  /** One sentence for people. */
  readonly summary?: string
  /** Shown in `.env.example` and in documents. */
  readonly example?: string
  /** The value that an absent variable behaves as, written as in an env file. */
  readonly default?: string | number | boolean
  /** When its absence is an error; never if left out. */
  readonly required?: Requirement
  /** What a malformed value is; a warning if left out. */
  readonly malformed?: 'warn' | 'error'
  /** Services that read it; those of its group when left out. */
  readonly services?: Readers
  /** Never shown; some kinds are secret in any case. */
  readonly secret?: boolean
  /** A secret that operators make themselves: its strength is checked. */
  readonly chosen?: boolean
  /** Two values separated by a comma are accepted while it is rotated; the first is used. */
  readonly rotates?: boolean
  /** It is sent as a bearer token, so it holds what an HTTP header can carry. */
  readonly bearer?: boolean
  /** An address that paths are put behind: it takes no query and no fragment. */
  readonly base?: boolean
  /** It may differ between replicas, as the name of a machine does. */
  readonly perReplica?: boolean
  /** It only adjusts what another variable switches on: set alone, it leaves its group absent. */
  readonly adjusts?: boolean
  /** Bounds of a number, both included. */
  readonly range?: readonly [number, number]
  /** Pattern that the whole value must match. */
  readonly pattern?: string | RegExp
  /** The values of an enum. */
  readonly of?: readonly string[]
  /** Prefixes that a key of this kind starts with, by the mode it belongs to. */
  readonly prefixes?: { readonly live: readonly string[]; readonly test: readonly string[] }
  readonly schema?: StandardSchema
}

interface RuleTexts {
  /** Stable id, explained by `platformctl env explain ID`; made from the group and the kind when left out. */
  readonly id?: string
  readonly cause?: string
  readonly fix?: string
}

/** The five kinds of rule between variables (CONTRACT §2). */
export type RuleDefinition = RuleTexts &
  (
    | { readonly allOrNone: readonly string[] }
    /** When any (or all) of `when` are present, every one of `requires` must be. */
    | {
        readonly requires: readonly string[]
        readonly when: readonly string[]
        readonly match?: 'any' | 'all'
        readonly where?: RuleCondition
      }
    /** When all of `when` are present, one of `atLeastOne` must be. */
    | { readonly atLeastOne: readonly string[]; readonly when: readonly string[] }
    /** At most one of them. */
    | { readonly exclusive: readonly string[] }
    /** This very value, or one in which the expression is found. */
    | {
        readonly forbidden: string
        readonly value: string | RegExp
        readonly where?: RuleCondition
      }
  )

/**
 * A rule applies only while this variable has one of these values, or one that the expression finds; a variable that
 * is absent has the value ''. For the engine's own groups.
 */
export interface RuleCondition {
  readonly variable: string
  readonly of: readonly string[] | RegExp
}

export interface GroupDefinition {
  readonly services: Readers
  /** Completes "Nothing to do, unless you want …". */
  readonly unlocks: string
  /** Consequence of leaving the group out. */
  readonly absent: string
  /** Sentence for visitors on the status page while the group is absent; without it, only operators see that it is. */
  readonly visitors?: string
  /** When its absence is an error; never if left out. */
  readonly required?: Requirement
  /** On, whatever is set. */
  readonly always?: boolean
  readonly variables: Readonly<Record<string, VariableDefinition>>
  readonly rules?: readonly RuleDefinition[]
}
