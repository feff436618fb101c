import { LIVE_FINDINGS, type LiveFindingId } from '../env/explanations.ts'
import type { Origin } from '../env/validate.ts'
import type { Finding } from '../finding.ts'
import type { LiveCheck, LiveResult } from './live.ts'

/** The subject of a finding's sentence. The step's detail is its predicate. */
const SUBJECTS: Readonly<Record<LiveCheck, (variable: string) => string>> = {
  configuration: (variable) => variable,
  'name resolution': (variable) => `The host of ${variable}`,
  domain: (variable) => `The domain of ${variable}`,
  certificate: (variable) => `The certificate behind ${variable}`,
  reachability: (variable) => capital(variable),
  health: (variable) => `The service behind ${variable}`,
  authorisation: (variable) => variable,
  'service role': (variable) => variable,
  'published keys': (variable) => variable,
  SPF: (variable) => `The domain of ${variable}`,
  DKIM: (variable) => `The domain of ${variable}`,
  DMARC: (variable) => `The domain of ${variable}`,
  migrations: (variable) => (variable === '' ? 'The store' : `The store of ${variable}`),
  'test message': (variable) => `The receiver of ${variable}`,
}

/**
 * Gives an error for each failed check and a warning for each doubtful one. Checks that met the same fault at
 * the same place share one finding, which names the variables of all.
 */
export function liveFindings(results: readonly LiveResult[], origin: Origin): Finding[] {
  const faults = results.filter((result) => 'id' in result)
  return [...Map.groupBy(faults, causeOf).values()].flatMap((same) => {
    const [first] = same
    if (first === undefined) return []
    const { target, check, id, detail, state } = first
    const variables = [...new Set(same.flatMap((one) => one.variables))]
    const where = variables.map(origin).find((place) => place !== undefined)
    return [
      {
        id,
        severity: state === 'failed' ? 'error' : 'warning',
        services: [...new Set(same.flatMap(({ services }) => services))],
        group: target,
        present: variables,
        missing: [],
        cause: `${SUBJECTS[check](same.length > 1 ? variables.join(', ') : subjectOf(first))} ${detail}.`,
        fix: LIVE_FINDINGS[id].fix,
        ...where,
      } satisfies Finding,
    ]
  })
}

/** A silent name server is one fault whatever was looked up; any other fault belongs to its place. */
function causeOf(result: LiveResult & { readonly id: LiveFindingId }): unknown {
  if (result.id === 'live-name-server') return result.id
  return result.place === undefined ? result : `${result.state} ${result.id} ${result.place} ${result.detail}`
}

/**
 * The subject of a finding about an address. If payments have no address of their own, they go to the
 * provider's, which no variable names.
 */
function subjectOf({ target, check, variables }: LiveResult): string {
  return target === 'payments' && check !== 'authorisation' && variables[0] === 'PAYMENTS_SECRET_KEY'
    ? 'the payments provider'
    : variables.join(', ')
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
