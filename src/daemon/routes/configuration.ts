import { statSync } from 'node:fs'
import * as z from 'zod'
import { bearerOf, hasBearer } from '../../core/access/identity.ts'
import { createSemaphore } from '../../core/delivery/semaphore.ts'
import { rawValue } from '../../core/env/environment.ts'
import { PlatformError } from '../../core/errors.ts'
import { LEAST_TOKEN, NONCE, openFingerprints } from '../../core/fingerprints.ts'
import type { Service } from '../../core/service.ts'
import { jsonResponse } from '../http/respond.ts'
import type { RouteHandler } from '../http/route.ts'
import type { Parts } from '../parts.ts'

export const SOURCES = ['file', 'environment', 'default', 'unset'] as const

export const ConfigurationAnswer = z.object({
  service: z.string(),
  nonce: z.string().regex(NONCE),
  startedAt: z.iso.datetime(),
  build: z.string().nullable(),
  platform: z.object({
    name: z.string(),
    fingerprint: z
      .string()
      .nullable()
      .describe('Of the definition with its mails and lessons; null without a definition.'),
    lessons: z.string().nullable().describe('Of its mails and lessons alone.'),
  }),
  changedFiles: z.array(z.string()).describe('Env files that were written after the start.'),
  variables: z.array(
    z.object({
      name: z.string(),
      source: z.enum(SOURCES),
      secret: z.boolean(),
      perReplica: z.boolean().describe('May differ between replicas.'),
      fingerprint: z.string().optional(),
    }),
  ),
})

const MOST_WAITING = 4

/**
 * Answers with a fingerprint of each variable that a service reads, so that `env verify` can compare them with a file.
 * The services of one process derive one answer at a time, because each takes seconds of a core.
 */
export function configurationRoutes({
  platform: { contract },
  settings: {
    health: { deepToken: token },
    site,
  },
  started: { at, env, platform, sourceOf = () => 'environment', files = [] },
  onRefused,
}: Pick<Parts, 'platform' | 'settings' | 'started'> & {
  readonly onRefused: (given: 'wrong' | 'none') => void
}): (service: Service) => RouteHandler {
  const inTurn = createSemaphore(1)
  let waiting = 0
  return (service) => async (asked) => {
    const { request, requestId, url } = asked
    if (token === undefined) throw new PlatformError('not_found', 'There is no such page or route.')
    if (!hasBearer(request, token)) {
      onRefused(request.headers.has('authorization') ? 'wrong' : 'none')
      throw new PlatformError(
        'unauthenticated',
        'The configuration needs HEALTH_DEEP_TOKEN as Authorization: Bearer.',
      )
    }
    asked.passed()
    const presented = bearerOf(request) ?? ''
    if (presented.length < LEAST_TOKEN)
      throw new PlatformError(
        'bad_request',
        `Fingerprints under a token that can be guessed would give the values away: set HEALTH_DEEP_TOKEN to at least ${LEAST_TOKEN} characters (openssl rand -base64 32).`,
      )
    const nonce = url.searchParams.get('nonce') ?? ''
    if (!NONCE.test(nonce))
      throw new PlatformError('bad_request', 'The nonce is missing or malformed.', {
        issues: [{ path: 'nonce', message: 'Send 16 random bytes in hexadecimal (openssl rand -hex 16).' }],
      })
    if (waiting > MOST_WAITING)
      throw new PlatformError('rate_limited', 'Other callers are being answered; try again later.', {
        retryAfterSeconds: 5,
      })
    waiting += 1
    try {
      return await inTurn(async () => {
        const fingerprint = await openFingerprints(presented, nonce)
        const variables: z.infer<typeof ConfigurationAnswer>['variables'] = []
        for (const variable of contract.variables) {
          if (!variable.services.includes(service)) continue
          const { name, secret, perReplica, default: unset } = variable
          const set = rawValue(env, name)
          const value = set ?? unset
          variables.push({
            name,
            source: set !== undefined ? sourceOf(name) : unset === undefined ? 'unset' : 'default',
            secret,
            perReplica,
            ...(value !== undefined && { fingerprint: await fingerprint(variable, value) }),
          })
        }
        const body: z.infer<typeof ConfigurationAnswer> = {
          service,
          nonce,
          startedAt: new Date(at).toISOString(),
          build: site.buildStamp ?? null,
          platform,
          changedFiles: files.filter((file) => isNewer(file, at)),
          variables,
        }
        return jsonResponse(body, { requestId })
      })
    } finally {
      waiting -= 1
    }
  }
}

/** A file that is gone was changed as well. */
function isNewer(file: string, than: number): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY) > than
}
