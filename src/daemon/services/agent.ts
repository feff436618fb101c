import type { RouteTable } from '../http/route.ts'
import type { Parts } from '../parts.ts'
import { healthRoute } from '../routes/health.ts'

export function agentTable({ health }: Parts): RouteTable {
  return { agentHealth: healthRoute(health.agent, false) }
}
