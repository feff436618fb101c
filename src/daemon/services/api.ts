import type { RouteTable } from '../http/route.ts'
import type { Parts } from '../parts.ts'
import { healthRoute } from '../routes/health.ts'

export function apiTable({ health }: Parts): RouteTable {
  return { apiHealth: healthRoute(health.api, false) }
}
