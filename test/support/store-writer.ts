import { openStore } from '../../src/core/store/open.ts'
import { subscribe } from './subscribers.ts'

/**
 * A program that subscribes and confirms people as fast as it can, one durable commit after the other, and writes each
 * number to standard output after its commit: what a reader has seen, the store has acknowledged.
 */
const [file, prefix] = process.argv.slice(2)
if (file === undefined || prefix === undefined) throw new Error('usage: store-writer FILE PREFIX')
const store = await openStore({ kind: 'sqlite', file })
for (let number = 1; ; number += 1) {
  await subscribe(store, `${prefix}${number}`, Date.now())
  // Pause after each hundred, or the store grows faster than it can be copied.
  if (number % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  process.stdout.write(`${number}\n`)
}
