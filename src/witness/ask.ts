import { causeOfStatus } from '../core/health/remote-report.ts'
import { isRecord, parsedJson } from '../core/is-record.ts'
import { CAUSES } from '../core/network/causes.ts'
import { type GetInput, get } from '../core/network/get.ts'
import { addressUnder } from '../core/trim-end.ts'
import { isProof, isSigned, readSnapshot, tokenOf, type WitnessSecret } from '../core/witness.ts'
import type { Vote } from './votes.ts'

const ANSWER_MS = 10_000
/** A platform of a thousand probes that had trouble every day, and the incidents of 90 days: larger would count as an outage. */
const LARGEST_SNAPSHOT = 16 * 1024 * 1024
const LARGEST_VOTE = 16 * 1024

type AskOptions = Pick<GetInput, 'monotonic' | 'network' | 'signal'>

async function fetchJson(
  url: URL,
  headers: Record<string, string>,
  { largestBytes, ...options }: AskOptions & { readonly largestBytes: number },
): Promise<{ readonly value: unknown } | { readonly reason: string }> {
  const outcome = await get({
    ...options,
    url,
    headers: { accept: 'application/json', ...headers },
    timeoutMs: ANSWER_MS,
    largestBytes,
    wantsBody: (status) => status === 200,
  })
  if (!outcome.answered) return { reason: CAUSES[outcome.cause].meaning }
  if (outcome.status === 401) return { reason: 'it refuses the WITNESS_SECRET of this witness' }
  const cause = causeOfStatus(outcome.status)
  if (cause !== undefined) return { reason: CAUSES[cause].meaning }
  const value = outcome.status === 200 ? parsedJson(outcome.body) : undefined
  if (value !== undefined) return { value }
  return { reason: `it answers with ${outcome.status}, and not as the platform does` }
}

/** Asks the platform. Only an answer that proves the shared secret counts as reached: a proxy’s error page does not. */
export async function askPlatform(
  platform: string,
  own: WitnessSecret,
  /** `have`: the signature of the snapshot that is kept. */
  report: Readonly<{ at: number; nonce: string; have: string | undefined; outage: object | undefined }>,
  options: AskOptions,
) {
  const text = JSON.stringify({ name: own.name, ...report })
  const authorization = `Bearer ${tokenOf(text, own.secret)}`
  const url = addressUnder(platform, '/api/witness')
  const fetched = await fetchJson(url, { authorization }, { ...options, largestBytes: LARGEST_SNAPSHOT })
  if ('reason' in fetched) return fetched
  const answer = textIn(fetched.value, 'answer')
  if (!isProof(textIn(fetched.value, 'proof'), answer, own.secret, 'answers'))
    return { reason: 'something else answers in its place' }
  const said: unknown = JSON.parse(answer)
  if (!isRecord(said) || said.nonce !== report.nonce) return { reason: 'something repeats an older answer' }
  const of = (name: 'snapshot' | 'key' | 'signature') => textIn(said.snapshot, name)
  const signed = { snapshot: of('snapshot'), key: of('key'), signature: of('signature') }
  const current = textIn(said, 'current')
  return readSnapshot(signed) === undefined ? { current } : { current, snapshot: signed }
}

const textIn = (value: unknown, name: string) =>
  isRecord(value) && typeof value[name] === 'string' ? value[name] : ''

/** A vote as a witness signs it: for one question, so that none can be repeated. */
export function readVote(
  value: unknown,
  { nonce, keys }: { readonly nonce: string; readonly keys: Readonly<Record<string, string>> },
): Vote | { readonly reason: string } {
  const [vote, signature] = [textIn(value, 'vote'), textIn(value, 'signature')]
  const said = parsedJson(vote)
  if (!isRecord(said) || typeof said.name !== 'string') return { reason: 'it is no witness' }
  const key = Object.hasOwn(keys, said.name) ? keys[said.name] : undefined
  if (key === undefined) return { reason: 'the platform lists no witness of its name' }
  if (!isSigned({ text: vote, key, signature })) return { reason: 'its signature is wrong' }
  if (said.nonce !== nonce) return { reason: 'something repeats an older vote' }
  return isVote(said) ? (said as unknown as Vote) : { reason: 'it is no witness' }
}

const isId = (value: unknown) => typeof value === 'string' && /^[\w-]{1,80}$/.test(value)

/** A stolen witness signs what it likes: its vote must have the form of one. */
function isVote({ view, mute = false, outage, closers, closed }: Record<string, unknown>): boolean {
  return (
    ['reachable', 'unreachable', 'unknown'].includes(String(view)) &&
    typeof mute === 'boolean' &&
    Array.isArray(closed) &&
    closed.every(isId) &&
    isRecord(closers) &&
    Object.entries(closers).flat().every(isId) &&
    (outage === undefined ||
      (isRecord(outage) &&
        isId(outage.id) &&
        isId(outage.by) &&
        Number.isSafeInteger(outage.since) &&
        Number(outage.since) >= 0 &&
        ['claimed', 'open'].includes(String(outage.phase))))
  )
}

export async function askPeer(peer: string, question: Parameters<typeof readVote>[1], options: AskOptions) {
  const url = addressUnder(peer, '/vote', `?nonce=${question.nonce}`)
  const fetched = await fetchJson(url, {}, { ...options, largestBytes: LARGEST_VOTE })
  return 'reason' in fetched ? fetched : readVote(fetched.value, question)
}
