import type { VirtualTime } from '../simulation/virtual-time.ts'

/** Lets virtual time pass until the work is done. */
export async function during<T>(time: VirtualTime, work: Promise<T>): Promise<T> {
  let done = false
  const watched = work.finally(() => {
    done = true
  })
  watched.catch(() => {})
  await time.passUntil(Number.MAX_SAFE_INTEGER, () => done)
  return watched
}
