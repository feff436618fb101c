import type { Store } from '../../src/core/store/store.ts'
import { begin } from './learning.ts'

/** Subscribes NAME@example.com to the first course and confirms it at once, straight in the store: id and token are the name. */
export async function joins({ course }: Pick<Store, 'course'>, name: string, now: number, address?: string) {
  const mail = address ?? `${name}@example.com`
  const who = { course: 'quantum', identity: mail, address: mail, id: name, tokenHash: name, now }
  await course.requestConfirmation(who)
  await course.confirm({ begin, tokenHash: name, now })
}
