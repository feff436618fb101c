import type { RouteTable } from '../http/route.ts'
import type { Parts } from '../parts.ts'
import { healthRoute } from '../routes/health.ts'
import { metricsRoute } from '../routes/metrics.ts'

export function apiTable({ health, metrics }: Parts): RouteTable {
  return { apiHealth: healthRoute(health.api, false), metrics: metricsRoute(metrics) }
}
