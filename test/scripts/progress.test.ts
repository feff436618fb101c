import { expect, test } from 'vitest'
import { progressOn } from '../../scripts/progress.ts'

function watched(isTTY: boolean) {
  const written: string[] = []
  let now = 0
  const progress = progressOn({
    stream: { isTTY, write: (text: string) => written.push(text) },
    everyMs: 1000,
    now: () => now,
  })
  return {
    written,
    progress,
    at(ms: number, text: string) {
      now = ms
      progress.tell(text)
    },
  }
}

test('without a terminal progress is a line at once and then one now and then', () => {
  const { written, at, progress } = watched(false)
  for (let ms = 0; ms <= 2500; ms += 10) at(ms, `${ms} of 2500`)
  progress.end()
  expect(written).toEqual(['0 of 2500\n', '1000 of 2500\n', '2000 of 2500\n'])
})

test('on a terminal it is one line that is written over and taken away', () => {
  const { written, at, progress } = watched(true)
  at(0, 'one')
  at(50, 'too soon')
  at(150, 'two')
  progress.end()
  expect(written).toEqual(['\r\x1b[Kone', '\r\x1b[Ktwo', '\r\x1b[K'])
})

test('does not erase a progress line that was never written', () => {
  const { written, progress } = watched(true)
  progress.end()
  expect(written).toEqual([])
})
