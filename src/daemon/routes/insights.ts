import { insightsData } from '../../core/analytics/insights-data.ts'
import { PlatformError } from '../../core/errors.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { readBuilt } from '../http/built.ts'
import { htmlResponse } from '../http/respond.ts'
import type { RouteHandler } from '../http/route.ts'
import { insightsPage } from '../pages/insights.ts'

/** The page with its script and style inside, as the build made them: one answer, and nothing else to load. */
export function insightsRoute(platform: Pick<ResolvedPlatform, 'events' | 'insights'>): RouteHandler {
  const data = insightsData(platform)
  let assets: Promise<{ script: string; style: string }> | undefined
  return async ({ requestId, frame }) => {
    assets ??= readAssets()
    const found = await assets.catch(() => undefined)
    if (found === undefined) {
      assets = undefined
      throw new PlatformError('unavailable', 'The script of this page is not built: npm run build makes it.')
    }
    return htmlResponse({ requestId, ...insightsPage({ ...found, frame, data }) })
  }
}

async function readAssets(): Promise<{ script: string; style: string }> {
  return { script: await readBuilt('insights.js'), style: await readBuilt('insights.css') }
}
