import type { MailRoute } from '../env/settings.ts'
import type { LiveDependencies } from './dependencies.ts'
import { certificateStep, keyedEndpoint, nameStep } from './endpoint.ts'
import type { Step, StepOutcome } from './live.ts'

const KEY = 'MAILER_API_KEY'

/** The mail transport: name, an answer, certificate (over SMTP after STARTTLS) and the key. Nothing is sent. */
export function mailSteps(dependencies: LiveDependencies, route: MailRoute): Step[] {
  if (route.kind === 'api') {
    return [
      ...keyedEndpoint(dependencies, route.url, 'MAILER_API_URL'),
      authorisation(dependencies, KEY, 'is accepted'),
    ]
  }
  const variable = 'MAILER_SMTP_URL'
  const { hostname, port, protocol, username } = new URL(route.url.reveal())
  const startTls = protocol === 'smtp:'
  const at = { host: hostname, port: Number(port) || (startTls ? 587 : 465) }
  return [
    nameStep(dependencies, hostname, variable),
    {
      check: 'reachability',
      variables: [variable],
      run: async (signal) => {
        await dependencies.network.connect(at.host, at.port, signal)
        return { state: 'passed', detail: 'accepts connections' }
      },
    },
    certificateStep(dependencies, { ...at, startTls }, variable),
    authorisation(
      dependencies,
      username === '' ? variable : KEY,
      username === '' ? 'asks for no user' : 'is accepted',
    ),
  ]
}

function authorisation(dependencies: LiveDependencies, variable: string, passed: string): Step {
  return {
    check: 'authorisation',
    variables: [variable],
    run: async (signal): Promise<StepOutcome> => {
      const refusal = await refusalOf(dependencies, signal)
      if (refusal === undefined) return { state: 'passed', detail: passed }
      return refusal === 'key'
        ? { state: 'failed', id: 'live-unauthorised', detail: 'is refused' }
        : { state: 'failed', id: 'live-unreachable', detail: 'cannot be tried: the mail conversation breaks' }
    },
  }
}

/**
 * The reason a transport gives when it fails verification; undefined if it passes. Reasons are our own sentences: `…
 * refused the key` and `… refused the credentials`.
 */
async function refusalOf(
  { verifyMail }: LiveDependencies,
  signal: AbortSignal,
): Promise<'key' | 'other' | undefined> {
  try {
    await verifyMail(signal)
    return undefined
  } catch (error) {
    return error instanceof Error && /refused the (?:key|credentials)/.test(error.message) ? 'key' : 'other'
  }
}
