import crypto, { type KeyObject } from 'node:crypto'
import { isSameText } from './accepted-secret.ts'
import { attempt, isRecord, parsedJson } from './is-record.ts'
import { type Secret, secret } from './secret.ts'

export interface WitnessSecret {
  readonly name: string
  readonly secret: Secret
}

export const WITNESS_NAME = /^[a-z0-9-]{1,32}$/
const ENTRY = /^(?:([a-z0-9-]{1,32}):)?([!-+\--9;-~]{24,200})$/

/** What a single secret without a name belongs to. */
const ONLY_WITNESS = 'witness'

/** `NAME:SECRET`, separated by commas; a single secret needs no name. Undefined if the value has another form. */
export function parseWitnessSecrets(value: string): readonly WitnessSecret[] | undefined {
  const parts = value.split(',').map((part) => ENTRY.exec(part.trim()))
  const found = parts.flatMap((part) =>
    part?.[2] === undefined ? [] : [{ name: part[1] ?? ONLY_WITNESS, secret: secret(part[2]) }],
  )
  const isWhole = found.length === parts.length && (parts.length === 1 || parts.every((part) => part?.[1]))
  return isWhole && new Set(found.map(({ name }) => name)).size === found.length ? found : undefined
}

/** The status of the platform for visitors, ready to be served by another host. */
export interface StatusContent {
  readonly html: string
  /** Says on the page how old it is, with `{time}`; an older platform has `{minutes}` too. */
  readonly kept: string
  readonly json: string
  readonly atom: string
  readonly badge: string
  readonly badgeUnreachable: string
  /** From here on, an older platform has none. */
  readonly calendar?: string
  /** Pages by path, which differ only in the `{title}` and the `{main}` of their shell. */
  readonly incidents?: {
    readonly shell: string
    readonly pages: Readonly<Record<string, { readonly title: string; readonly main: string }>>
  }
}

export interface Snapshot extends StatusContent {
  readonly platform: string
  readonly language: string
  /** UTC milliseconds. */
  readonly at: number
  /** Public keys of all witnesses by name, so that they can vote when the platform is gone. */
  readonly witnesses: Readonly<Record<string, string>>
}

/** A snapshot as text, so that what was signed is what is kept. */
export interface SignedSnapshot {
  readonly snapshot: string
  readonly key: string
  readonly signature: string
}

export function readSnapshot({ snapshot, key, signature }: SignedSnapshot): Snapshot | undefined {
  if (!isSigned({ text: snapshot, key, signature })) return undefined
  const value = parsedJson(snapshot)
  return isSnapshot(value) ? value : undefined
}

const TEXTS = ['html', 'kept', 'json', 'atom', 'badge', 'badgeUnreachable']
/** A path that stays within a folder or a bucket. */
const PAGE = /^(?:[\w-][\w.-]*\/)*[\w-][\w.-]*$/

/** A platform that was broken into signs what it likes: its witnesses outlive it, and write no file elsewhere. */
function isSnapshot(value: unknown): value is Snapshot {
  if (!isRecord(value) || !isRecord(value.witnesses) || !isRecord(parsedJson(`${value.json}`))) return false
  const { calendar = '', incidents = { shell: '', pages: {} } } = value
  if (!isRecord(incidents) || !isRecord(incidents.pages)) return false
  const pages = Object.entries(incidents.pages)
  const texts = pages.flatMap(([, page]) => (isRecord(page) ? [page.title, page.main] : [undefined]))
  texts.push(calendar, incidents.shell, ...TEXTS.map((one) => value[one]), ...Object.values(value.witnesses))
  return pages.every(([name]) => PAGE.test(name)) && texts.every((text) => typeof text === 'string')
}

// An Ed25519 private key in PKCS #8 is this and its 32 bytes (RFC 8410).
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The Ed25519 key that belongs to a secret: the same wherever it is made. */
export function signingKey(of: Secret, purpose: 'platform' | 'witness'): KeyObject {
  const seed = crypto.hkdfSync('sha256', of.reveal(), '', `platformctl ${purpose} signature`, 32)
  const key = Buffer.concat([PKCS8, Buffer.from(seed)])
  return crypto.createPrivateKey({ key, format: 'der', type: 'pkcs8' })
}

export function publicKeyOf(key: KeyObject): string {
  return crypto.createPublicKey(key).export({ format: 'der', type: 'spki' }).toString('base64url')
}

export function sign(text: string, key: KeyObject): string {
  return crypto.sign(null, Buffer.from(text), key).toString('base64url')
}

export function isSigned({ text, key, signature }: Record<'text' | 'key' | 'signature', string>): boolean {
  const isValid = attempt(() => {
    const from = crypto.createPublicKey({ key: Buffer.from(key, 'base64url'), format: 'der', type: 'spki' })
    return crypto.verify(null, Buffer.from(text), from, Buffer.from(signature, 'base64url'))
  })
  return isValid === true
}

/** What a witness presents as its bearer token: a text, and the proof that it has the secret. */
export function tokenOf(text: string, of: Secret): string {
  return `${Buffer.from(text).toString('base64url')}.${proofOf(text, of, 'asks')}`
}

export function readToken(token: string): { readonly text: string; readonly proof: string } {
  const [text = '', proof = ''] = token.split('.')
  return { text: Buffer.from(text, 'base64url').toString(), proof }
}

/** Proves that a text comes from the other holder of the secret; `direction` keeps a question from being its own answer. */
export function proofOf(text: string, of: Secret, direction: 'asks' | 'answers'): string {
  return crypto.createHmac('sha256', of.reveal()).update(`${direction}\n${text}`).digest('base64url')
}

export const isProof = (given: string, ...of: Parameters<typeof proofOf>) => isSameText(given, proofOf(...of))
