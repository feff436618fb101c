import * as z from 'zod'
import { bearerOf } from '../../core/access/identity.ts'
import { MINUTE_MS, MOST_SKEW_MS } from '../../core/durations.ts'
import { PlatformError } from '../../core/errors.ts'
import {
  isProof,
  parseWitnessSecrets,
  proofOf,
  publicKeyOf,
  readToken,
  type SignedSnapshot,
  type Snapshot,
  sign,
  signingKey,
} from '../../core/witness.ts'
import { jsonResponse } from '../http/respond.ts'
import type { RouteHandler } from '../http/route.ts'
import { frameOf } from '../pages/layout.ts'
import type { Parts } from '../parts.ts'
import { type StatusNeeds, statusForVisitors } from './status.ts'

/** What a witness asks. */
const WitnessAsk = z.object({
  name: z.string().max(32),
  nonce: z.string().min(22).max(64),
  /** UTC milliseconds. */
  at: z.number(),
  /** The signature of the snapshot that it keeps. */
  have: z.string().max(128).optional(),
  /** The last one that it saw. */
  outage: z
    .object({ seconds: z.int().min(0), reason: z.string().max(200) })
    .optional()
    .catch(undefined),
})

export const WitnessAnswer = z.strictObject({
  answer: z
    .string()
    .describe('JSON: the nonce, and the signed snapshot if it is another than the witness has.'),
  proof: z.string().describe('HMAC-SHA256 over the answer under the secret of the witness.'),
})

function readAsk(text: string) {
  try {
    return WitnessAsk.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** A snapshot that says nothing new is signed again this often. */
const SIGNED_AGAIN_MS = 5 * MINUTE_MS

/**
 * Gives a witness the signed status, and takes its report. The snapshot's public key is proved under the secret that the
 * witness and the platform share, so nobody between them can put another in its place.
 */
export function witnessRoute(
  parts: Parts & StatusNeeds & { readonly refused: (given: 'wrong' | 'none') => void },
): RouteHandler {
  const { settings, platform, signingSecret, clock, log } = parts
  const witnesses = parseWitnessSecrets(settings.value('WITNESS_SECRET') ?? '') ?? []
  const keys = Object.fromEntries(
    witnesses.map(({ name, secret }) => [name, publicKeyOf(signingKey(secret, 'witness'))]),
  )
  const frame = frameOf(platform, settings.site.siteUrl)
  let last: (SignedSnapshot & { readonly at: number; readonly facts: string }) | undefined
  const lastAsked = new Map<string, number>()

  async function signed(): Promise<SignedSnapshot | undefined> {
    const { facts, ...status } = await statusForVisitors(parts, frame)
    const at = clock.now()
    if (last && last.facts === facts && Math.abs(at - last.at) < SIGNED_AGAIN_MS) return last
    const key = signingKey(await signingSecret(), 'platform')
    const content: Snapshot = {
      platform: platform.name,
      language: platform.language,
      at,
      ...status,
      witnesses: keys,
    }
    const snapshot = JSON.stringify(content)
    last = { snapshot, key: publicKeyOf(key), signature: sign(snapshot, key), at, facts }
    return last
  }

  return async (asked) => {
    const { request, requestId } = asked
    if (witnesses.length === 0) throw new PlatformError('not_found', 'There is no such page or route.')
    const { text, proof } = readToken(bearerOf(request) ?? '')
    const ask = readAsk(text)
    const witness = witnesses.find(({ name }) => name === ask?.name)
    if (!ask || !witness || !isProof(proof, text, witness.secret, 'asks')) {
      parts.refused(request.headers.has('authorization') ? 'wrong' : 'none')
      throw new PlatformError(
        'unauthenticated',
        'WITNESS_SECRET has no witness of this name with this secret.',
      )
    }
    asked.passed()
    // A report is taken once: a copy of it is not newer than itself.
    if (ask.at > (lastAsked.get(ask.name) ?? 0) && Math.abs(clock.now() - ask.at) < MOST_SKEW_MS) {
      lastAsked.set(ask.name, ask.at)
      if (ask.outage)
        log.warn('witness_outage', 'a witness could not reach the platform', {
          witness: ask.name,
          ...ask.outage,
        })
    }
    // Without a store there is no key: what a witness keeps then stays as it is.
    const found = await signed().catch(() => undefined)
    const { snapshot, key, signature } = found ?? {}
    const answer = JSON.stringify({
      nonce: ask.nonce,
      current: signature,
      ...(signature !== ask.have && { snapshot: { snapshot, key, signature } }),
    })
    return jsonResponse({ answer, proof: proofOf(answer, witness.secret, 'answers') }, { requestId })
  }
}
