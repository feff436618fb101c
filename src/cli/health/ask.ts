import type { Verdict } from '../../core/health/verdict.ts'

/** One round: every service asked at once, each for at most `timeoutMs`. */
export type Ask = (timeoutMs: number) => Promise<Verdict>
