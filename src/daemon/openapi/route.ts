import type { Settings } from '../../core/env/settings.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { WEB } from '../../core/service.ts'
import { jsonResponse } from '../http/respond.ts'
import type { RouteHandler } from '../http/route.ts'

/** Built once, at the first request, because most processes are never asked for it. */
export function openapiRoute({
  platform,
  settings: { addresses, site },
}: {
  readonly platform: ResolvedPlatform
  readonly settings: Settings
}): RouteHandler {
  let made: Promise<unknown> | undefined
  const portOf = (name: string) => platform.services.find((service) => service.name === name)?.port
  const addressOf = (name: string) =>
    name === WEB ? site.siteUrl : (addresses.get(name) ?? `http://127.0.0.1:${portOf(name)}`)
  return async ({ requestId }) => {
    made ??= import('./document.ts').then(({ openapiDocument }) => openapiDocument(platform, addressOf))
    return jsonResponse(await made, { requestId })
  }
}
