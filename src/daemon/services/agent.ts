import type { RouteTable } from '../http/route.ts'
import type { Parts } from '../parts.ts'
import { healthRoute } from '../routes/health.ts'
import { metricsRoute } from '../routes/metrics.ts'

export function agentTable({ health, metrics }: Parts): RouteTable {
  return { agentHealth: healthRoute(health.agent, false), metrics: metricsRoute(metrics) }
}
