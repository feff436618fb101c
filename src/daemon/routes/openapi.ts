import type { Service } from '../../core/service.ts'
import { jsonResponse } from '../http/respond.ts'
import type { Handler } from '../http/route.ts'

/** Made once, at the first request: most processes are never asked. */
export function openapiRoute(urls: Readonly<Record<Service, string>>): Handler {
  let made: Promise<unknown> | undefined
  return async ({ requestId }) => {
    made ??= import('../openapi/document.ts').then(({ openapiDocument }) => openapiDocument(urls))
    return jsonResponse(await made, { requestId })
  }
}
