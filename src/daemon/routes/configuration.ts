import { statSync } from 'node:fs'
import * as z from 'zod'
import { bearerOf } from '../../core/access/identity.ts'
import { createSemaphore } from '../../core/calls.ts'
import { rawValue } from '../../core/env/settings.ts'
import { PlatformError } from '../../core/errors.ts'
import { LEAST_TOKEN, NONCE, openFingerprints } from '../../core/fingerprints.ts'
import { WEB } from '../../core/service.ts'
import { defineRoute, json, query } from '../http/route.ts'

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
  changedFiles: z
    .array(z.string())
    .describe('Env files and files of secrets that were written after the start.'),
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

const EXAMPLE_NONCE = '8f14e45fceea167a5a36dedd4bea2543'
/** Over all services of the process, which derive one answer at a time, because each takes seconds of a core. */
const MOST_WAITING = 4
const inTurn = createSemaphore(1)
let waiting = 0

export const route = () =>
  defineRoute({
    tag: 'Operations',
    summary: 'Fingerprints of the running configuration, for `env verify`',
    description:
      'Never a value. Every service answers, for the variables that it reads. 404 while HEALTH_DEEP_TOKEN is not set; a token under 24 characters is a 400.',
    security: 'deepToken',
    parameters: [
      {
        ...query(
          'nonce',
          '16 random bytes in hexadecimal: fingerprints of two nonces cannot be compared.',
          EXAMPLE_NONCE,
          z.string().regex(NONCE),
        ),
        required: true,
      },
    ],
    answers: [
      json('What each variable was at the start.', 'Configuration', ConfigurationAnswer, {
        web: {
          service: WEB,
          nonce: EXAMPLE_NONCE,
          startedAt: '2026-11-21T04:00:00.000Z',
          build: '2026-11-21.1',
          platform: { name: 'Kiln School', fingerprint: 'f0c1a4d2b693', lessons: '0d5be2a1c774' },
          changedFiles: [],
          variables: [
            {
              name: 'MAILER_FROM',
              source: 'file',
              secret: false,
              perReplica: false,
              fingerprint: 'mGV1Qd0cX2kPqBq3v0r7t9h0s1Zk5m8y4uJw6nL3aEo',
            },
          ],
        },
      }),
    ],
    errors: ['bad_request', 'not_found', 'rate_limited'],
    handle:
      ({ service: { name: service }, platform: { contract }, settings: { site }, started }) =>
      async (c) => {
        const { at, env, platform, sourceOf = () => 'environment' as const, files = [] } = started
        const presented = bearerOf(c.request) ?? ''
        if (presented.length < LEAST_TOKEN)
          throw new PlatformError(
            'bad_request',
            `Fingerprints under a token that can be guessed would give the values away: set HEALTH_DEEP_TOKEN to at least ${LEAST_TOKEN} characters (openssl rand -base64 32).`,
          )
        const nonce = c.query('nonce') ?? ''
        if (!NONCE.test(nonce))
          throw new PlatformError('bad_request', 'The nonce is missing or malformed.', {
            issues: [{ path: 'nonce', message: 'Send 16 random bytes in hex (openssl rand -hex 16).' }],
          })
        if (waiting > MOST_WAITING)
          throw new PlatformError('rate_limited', 'Other callers are being answered; try again later.', {
            retryAfterSeconds: 5,
          })
        waiting += 1
        const variables = await inTurn(async () => {
          const fingerprint = await openFingerprints(presented, nonce)
          const found: z.infer<typeof ConfigurationAnswer>['variables'] = []
          for (const variable of contract.variables) {
            if (!variable.services.includes(service)) continue
            const { name, secret, perReplica, default: unset } = variable
            const set = rawValue(env, name)
            // The daemon fills in its own addresses, which are of this replica alone: nobody set them.
            const value = sourceOf(name) === 'default' ? unset : (set ?? unset)
            found.push({
              name,
              source: set !== undefined ? sourceOf(name) : unset === undefined ? 'unset' : 'default',
              secret,
              perReplica,
              ...(value !== undefined && { fingerprint: await fingerprint(variable, value) }),
            })
          }
          return found
        }).finally(() => {
          waiting -= 1
        })
        return {
          service,
          nonce,
          startedAt: new Date(at).toISOString(),
          build: site.buildStamp ?? null,
          platform,
          // A file that is gone was changed as well.
          changedFiles: files.filter(
            (file) => (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY) > at,
          ),
          variables,
        }
      },
  })
