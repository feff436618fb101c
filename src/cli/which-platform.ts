import type { RecordedPlatform } from '../core/daemon-record.ts'
import type { Context } from './context.ts'

/** The platform of a command, as JSON documents and the log name it. */
export function recordedPlatform({ platform }: Pick<Context, 'platform'>): RecordedPlatform {
  const { name, definition } = platform
  return {
    name,
    definition: definition?.file ?? null,
    fingerprint: definition?.fingerprint() ?? null,
  }
}

/** One sentence without an end: which platform runs, or that none was found. */
export function whichPlatform(context: Pick<Context, 'platform' | 'searched'>): string {
  const recorded = recordedPlatform(context)
  if (recorded.definition !== null) return platformText(recorded)
  const { searched } = context
  return searched === undefined
    ? 'the default platform'
    : `no definition found in ${searched.join(' or ')}: running the default platform`
}

export function platformText({ name, definition, fingerprint }: RecordedPlatform): string {
  return definition === null
    ? 'the default platform'
    : `${name}, defined by ${definition} (fingerprint ${fingerprint})`
}
