import { type AuditAction, auditEntry, PROGRAM } from '../../src/core/audit.ts'
import type { Claim, Settlement } from '../../src/core/course/subscription.ts'
import { systemRandom } from '../../src/core/host.ts'
import type { Store } from '../../src/core/store/store.ts'
import { begin } from './learning.ts'

type Asked = Parameters<Store['course']['requestConfirmation']>[0]

/** Somebody's request for the default course; its token is that of this person and time. */
export const asked = (name: string, now = 0, more: Partial<Asked> = {}): Asked => ({
  course: 'quantum',
  identity: `${name}@example.com`,
  address: `${name}@example.com`,
  id: name,
  tokenHash: `${name}.${now}`,
  now,
  ...more,
})

/** Somebody asks for the default course and confirms. */
export async function subscribe(
  { course }: Pick<Store, 'course'>,
  name: string,
  now = 0,
  more: Partial<Asked> = {},
) {
  const request = asked(name, now, more)
  await course.requestConfirmation(request)
  const { tokenHash } = request
  return course.confirm({ begin, tokenHash, now })
}

/** How a claimed lesson ended: it was sent, and was the last one, unless the parts say otherwise. */
export const outcomeOf = (claim: Claim, now: number, more: Partial<Settlement> = {}): Settlement => ({
  claim,
  now,
  sent: true,
  nextAttemptAt: undefined,
  failures: 0,
  problem: undefined,
  end: false,
  ...more,
})

/** An erasure of somebody from everywhere. */
export const erasureOf = (name: string, suppressionHash: string, now: number) => {
  const identity = `${name}@example.com`
  return { identity, spellings: [identity], recipients: [], suppressionHash, now }
}

/** The entry in the log of what was done by the program itself. */
export const audited = (action: AuditAction, now: number, subject?: string) =>
  auditEntry({ clock: { now: () => now }, random: systemRandom }, { action, operator: PROGRAM, subject })
