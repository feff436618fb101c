import type { DispatchProgress, DispatchResult } from '../../core/course/course.ts'

/** Command-line options of `dispatch`. */
export interface DispatchOptions {
  readonly limit?: number
  readonly drain?: true
  readonly dryRun?: true
  readonly url?: string
  readonly local?: true
  readonly data?: string
  readonly envFile: readonly string[]
  readonly format: 'text' | 'json'
}

/** Where lessons are dispatched: here, or at an endpoint. */
export interface Source {
  /** One dispatch call; a remote one tells its progress only when it has ended. */
  readonly call: (onProgress: (progress: DispatchProgress) => void) => Promise<DispatchResult>
  /** Lessons due before the first call, where that can be known. */
  readonly remaining?: () => Promise<number>
  readonly due?: (limit: number) => Promise<
    readonly {
      readonly id: string
      readonly day: number | undefined
      readonly nextAttemptAt: number | undefined
    }[]
  >
  readonly close: () => Promise<void>
}
