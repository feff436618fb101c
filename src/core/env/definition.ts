import type { Reading } from './kinds.ts'

/** The language in which a platform's environment is described: the same in a preset and in `platform.config.ts`. */

/** Names of services, or `all`: every service of the platform. */
export type Readers = readonly string[] | 'all'

/** When absence is an error: always, while DEPLOY_ENVIRONMENT is production, or while a variable or a group is set. */
export type Requirement = true | 'production' | { readonly when: string }

export interface VariableDefinition extends Omit<Reading, 'pattern'> {
  /** One sentence: what the variable is for. */
  readonly summary?: string
  /** Shown in `.env.example` and in documents; never a real secret. */
  readonly example?: string
  /** Value used while the variable is absent. Setting it switches its group on only if all of its variables have one. */
  readonly default?: string | number | boolean
  /** Its absence is an error: always, in `'production'` (DEPLOY_ENVIRONMENT), or while `{ when: NAME }` is set. */
  readonly required?: Requirement
  /** What a malformed value is; a warning if left out. */
  readonly malformed?: 'warn' | 'error'
  /** The services that read it; those of its group when left out. */
  readonly services?: Readers
  /** Never shown in any output. Kinds of keys and of addresses with passwords always are. */
  readonly secret?: boolean
  /** A secret that you make yourself, so its strength is checked. */
  readonly chosen?: boolean
  /** It may differ between replicas: `env verify` shows that and passes. */
  readonly perReplica?: boolean
  /** Set alone, it leaves its group absent: it only adjusts what another variable switches on. */
  readonly adjusts?: boolean
  /** Pattern that the whole value must match. */
  readonly pattern?: string | RegExp
  /** How keys of the provider's live and test mode begin. */
  readonly prefixes?: { readonly live: readonly string[]; readonly test: readonly string[] }
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

/** For the engine's own groups: a rule applies while the variable ('' if absent) has, or matches, such a value. */
export interface RuleCondition {
  readonly variable: string
  readonly of: readonly string[] | RegExp
}

export interface GroupDefinition {
  /** The services that read its variables. */
  readonly services: Readers
  /** The feature that configuring the group unlocks: `the booking calendar`. */
  readonly unlocks: string
  /** The consequence of its absence: `the calendar is hidden`. */
  readonly absent: string
  /** Sentence for visitors meanwhile: `Bookings are closed: call us instead.` Without it, only operators see it. */
  readonly visitors?: string
  /** Its absence is an error, as of a variable: one of its variables has to be set. */
  readonly required?: Requirement
  /** The group is on, whatever is set. */
  readonly always?: boolean
  readonly variables: Readonly<Record<string, VariableDefinition>>
  readonly rules?: readonly RuleDefinition[]
}
