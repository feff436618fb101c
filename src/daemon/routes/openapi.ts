import type { Service } from '../../core/service.ts'
import { jsonResponse } from '../http/respond.ts'
import type { Handler } from '../http/route.ts'

/** Made at the first request: most processes are never asked. */
export function openapiRoute(urls: Readonly<Record<Service, string>>): Handler {
  return async ({ requestId }) => {
    const { openapiDocument } = await import('../openapi/document.ts')
    return jsonResponse(openapiDocument(urls), { requestId })
  }
}
