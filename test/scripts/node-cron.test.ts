import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { inUtcWithoutIcu } from '../../scripts/node-cron.ts'

const source = () =>
  readFile(new URL('../../node_modules/node-cron/dist/_shared.js', import.meta.url), 'utf8')

interface Times {
  readonly L: new (date: Date, zone: string) => { getParts(): object; toISO(): string }
}
/** What the source exports, without its file: it imports built-in modules only. */
async function loaded(code: string): Promise<Times> {
  return (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as Times
}

test('in UTC the schedule reads every time as node-cron itself does, and asks Intl for nothing', async () => {
  const code = await source()
  const [theirs, ours] = [await loaded(code), await loaded(inUtcWithoutIcu(code))]
  const read = ({ L }: Times, date: Date, zone: string) => {
    const time = new L(date, zone)
    return { ...time.getParts(), iso: time.toISO() }
  }
  const asked = vi.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts')
  fc.assert(
    fc.property(fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true }), (date) => {
      const expected = read(theirs, date, 'UTC')
      asked.mockClear()
      expect(read(ours, date, 'UTC')).toEqual(expected)
      expect(asked).not.toHaveBeenCalled()
    }),
  )
  asked.mockRestore()
  const date = new Date('2026-07-01T12:00:00Z')
  expect(read(ours, date, 'Europe/Berlin')).toEqual(read(theirs, date, 'Europe/Berlin'))
})

test('a node-cron that reads times in another way fails the build', () => {
  expect(() => inUtcWithoutIcu('function parts() {}')).toThrow('node-cron has changed')
})
