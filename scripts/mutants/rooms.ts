import { existsSync, statSync } from 'node:fs'

/** A folder of src/core, or daemon, cli or platform: sources with tests of their own. */
export interface Room {
  readonly name: string
  readonly source: string
  /** Folders and files of its tests. */
  readonly tests: readonly string[]
  /** The part of its mutants, in percent, that its tests should notice. */
  readonly goal: number
}

/** Tests of a room that are in the folder of another. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  store: ['test/core/course', 'test/core/incidents', 'test/core/mail/feedback', 'test/core/status'],
  network: ['test/core/health/adversarial.test.ts'],
  status: ['test/daemon/status.test.ts'],
  payments: ['test/cli/billing.test.ts', 'test/daemon/payments.test.ts'],
  incidents: ['test/daemon/alerts.test.ts'],
  daemon: ['test/core/status/shared-history.test.ts'],
}

/** Rooms in which a fault loses mail, data or a secret. */
const STRICT = ['course', 'store', 'mail', 'env', 'access', 'reporting']

/** Files that hold nothing but texts, styles or scripts of pages. */
const TEXTS = /^src\/core\/messages\/(?:de|en)\.ts$|\/(?:texts|style|pages-style|script)\.ts$/

/** Whether a source is nothing but text, in which there are no bugs to plant. */
export const isText = (file: string): boolean => TEXTS.test(file)

/** The room of a source file or folder, if it has one. */
export function roomOf(place: string): Room | undefined {
  const [, source, name] =
    /^(src\/core\/([^/.]+))(?:\/|$)/.exec(place) ?? /^(src\/(daemon|cli|platform))(?:\/|$)/.exec(place) ?? []
  if (source === undefined || name === undefined || !statSync(source, { throwIfNoEntry: false })) return
  const tests = [source.replace(/^src/, 'test'), ...(ALSO[name] ?? [])].filter((one) => existsSync(one))
  return { name, source, tests, goal: STRICT.includes(name) ? 85 : 75 }
}

/** Whether a test file is one of the room's. */
export function isTestOf(room: Room, file: string): boolean {
  return room.tests.some((one) => file === one || file.startsWith(`${one}/`))
}
