import { createRequire } from 'node:module'
import type { Finding } from '../finding.ts'
import type { Service } from '../service.ts'
import type { Origin, Report } from './validate.ts'

export const ERRORTRACK_SDK = '@sentry/node'

/** Warnings for optional packages that the environment asks for and that are not installed where this runs. */
export function missingPackages(input: {
  /** Results of the validators: a half-configured group needs no package. */
  readonly report: Report
  readonly services: readonly Service[]
  readonly origin: Origin
  readonly isInstalled: (name: string) => boolean
}): Finding[] {
  const { report, services, origin, isInstalled } = input
  const asked = report.groups.some(({ name, state }) => name === 'errortrack' && state === 'configured')
  if (!asked || isInstalled(ERRORTRACK_SDK)) return []
  return [
    {
      id: 'package-missing',
      severity: 'warning',
      services,
      group: 'errortrack',
      present: ['NEXT_PUBLIC_ERRORTRACK_DSN'],
      missing: [],
      cause: `NEXT_PUBLIC_ERRORTRACK_DSN is set, but the package ${ERRORTRACK_SDK} is not installed here: the services report no errors.`,
      fix: `Install it beside platformctl (npm install ${ERRORTRACK_SDK}), or remove the DSN.`,
      ...origin('NEXT_PUBLIC_ERRORTRACK_DSN'),
    },
  ]
}

/** Whether this package could be imported here. Loads none of it. */
export function isInstalled(name: string): boolean {
  try {
    return createRequire(import.meta.url).resolve(name) !== ''
  } catch {
    return false
  }
}
