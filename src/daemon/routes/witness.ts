import * as z from 'zod'
import { bearerOf } from '../../core/access/identity.ts'
import { MINUTE_MS, MOST_SKEW_MS } from '../../core/durations.ts'
import { PlatformError } from '../../core/errors.ts'
import { parsedJson } from '../../core/is-record.ts'
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
import { defineRoute, json, refusal, type Site } from '../http/route.ts'
import { keptStatus, summaryReader } from './status.ts'

const WitnessAsk = z.object({
  name: z.string().max(32),
  nonce: z.string().min(22).max(64),
  at: z.number(),
  /** The signature of the snapshot that it keeps. */
  have: z.string().max(128).optional(),
  outage: z
    .object({ seconds: z.int().min(0), reason: z.string().max(200) })
    .optional()
    .catch(undefined),
})

const WitnessAnswer = z.strictObject({
  answer: z
    .string()
    .describe('JSON: the nonce, and the signed snapshot if it is another than the witness has.'),
  proof: z.string().describe('HMAC-SHA256 over the answer under the secret of the witness.'),
})

/** A snapshot that says nothing new is signed again this often. */
const SIGNED_AGAIN_MS = 5 * MINUTE_MS

/** Gives the status, signed with a key that witnesses can trust; undefined while no store gives the key. */
function statusSigner(site: Site, witnesses: Snapshot['witnesses']) {
  const { platform, stores, clock } = site
  const read = summaryReader(site)
  let last: (SignedSnapshot & { readonly at: number; readonly facts: string }) | undefined
  return async (): Promise<SignedSnapshot> => {
    const summary = await read()
    const at = clock.now()
    const { state, announcements, incidents } = summary
    const facts = JSON.stringify([
      state,
      announcements,
      incidents.map(({ beganAt, endedAt, updates }) => [beganAt, endedAt, updates?.length]),
    ])
    if (last && last.facts === facts && Math.abs(at - last.at) < SIGNED_AGAIN_MS) return last
    const key = signingKey((await stores.keys()).linkKey, 'platform')
    const { name, language } = platform
    const content = await keptStatus(site, summary)
    const said: Snapshot = { platform: name, language, at, ...content, witnesses }
    const snapshot = JSON.stringify(said)
    last = { snapshot, key: publicKeyOf(key), signature: sign(snapshot, key), at, facts }
    return last
  }
}

/** The snapshot's key is proved under the shared secret, so nobody in between can put another in its place. */
export const route = () =>
  defineRoute({
    tag: 'Operations',
    summary: 'The signed status, for a witness',
    description:
      'What visitors see of the status, signed with Ed25519. 404 while WITNESS_SECRET is not set. Secrets are never sent: both sides prove that they have the same one.',
    security: 'witnessProof',
    answers: [
      json('Proved under the secret of the witness.', 'Witnessed', WitnessAnswer, {
        current: {
          answer: '{"nonce":"Cw2FvNnKp0dYq3ZkqzV1TQ","current":"Hq…"}',
          proof: 'mGV1Qd0cX2kPqBq3v0r7t9h0s1Zk5m8y4uJw6nL3aEo',
        },
      }),
    ],
    errors: ['not_found'],
    handle: (site) => {
      const { settings, clock, log } = site
      const witnesses = parseWitnessSecrets(settings.value('WITNESS_SECRET') ?? '') ?? []
      const keys = witnesses.map(({ name, secret }) => [name, publicKeyOf(signingKey(secret, 'witness'))])
      const signed = statusSigner(site, Object.fromEntries(keys))
      const lastAsked = new Map<string, number>()
      return async (c) => {
        if (witnesses.length === 0) throw new PlatformError('not_found', 'There is no such page or route.')
        const { text, proof } = readToken(bearerOf(c.request) ?? '')
        const ask = WitnessAsk.safeParse(parsedJson(text)).data
        const witness = witnesses.find(({ name }) => name === ask?.name)
        if (!ask || !witness || !isProof(proof, text, witness.secret, 'asks'))
          throw refusal(site, c, 'witness', 'WITNESS_SECRET has no witness of this name with this secret.')
        c.passed()
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
        const { snapshot, key, signature } = (await signed().catch(() => undefined)) ?? {}
        const answer = JSON.stringify({
          nonce: ask.nonce,
          current: signature,
          ...(signature !== ask.have && { snapshot: { snapshot, key, signature } }),
        })
        return { answer, proof: proofOf(answer, witness.secret, 'answers') }
      }
    },
  })
