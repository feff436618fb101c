import type { LiveDependencies } from './dependencies.ts'
import { certificateStep, nameStep, type PlainHttp, plainHttpStep } from './endpoint.ts'
import { NetworkFault, outcomeOfFault } from './fault.ts'
import type { Step } from './live.ts'

const VARIABLE = 'NEXT_PUBLIC_SITE_URL'

/** The site's own name and certificate, as visitors meet them. Before the first deployment nothing answers there: a warning. */
export function siteSteps(dependencies: LiveDependencies, plainHttp: PlainHttp): Step[] {
  const { hostname, port, protocol } = new URL(dependencies.settings.site.siteUrl)
  const name = nameStep(dependencies, hostname, VARIABLE)
  if (protocol !== 'https:') return [name, plainHttpStep(VARIABLE, plainHttp)]
  const where = { host: hostname, port: Number(port) || 443, startTls: false }
  const certificate = certificateStep(dependencies, where, VARIABLE)
  return [
    name,
    {
      ...certificate,
      run: (signal) =>
        certificate.run(signal).catch((error: unknown) => {
          const verdict = outcomeOfFault(error)
          const silent =
            error instanceof NetworkFault && ['refused', 'no route', 'timeout', 'broken'].includes(error.kind)
          return silent && 'id' in verdict
            ? { ...verdict, state: 'warning', detail: verdict.detail.replace('reached', 'read') }
            : verdict
        }),
    },
  ]
}
