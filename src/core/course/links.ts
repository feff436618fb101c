import { createHmac, hash } from 'node:crypto'
import { domainToUnicode } from 'node:url'
import { isSameText } from '../accepted-secret.ts'
import { formsOf } from '../address.ts'
import { PATHS } from '../paths.ts'
import type { Secret } from '../secret.ts'

const mac = (key: string, text: string) => createHmac('sha256', key).update(text).digest('base64url')

/** A confirmation token, made again for each attempt to mail it: only its SHA-256 is stored. */
export const confirmationToken = (key: string, message: string) => mac(key, `confirmation:${message}`)
export const hashToken = (token: string) => hash('sha256', token, 'base64url')
const signOf = (key: string, s: string) => mac(key, `unsubscribe:${s}`)

/** What a link says of its page: the course whose words it has, if not the first, and the language of its reader. */
export interface PageOf {
  readonly course?: string | undefined
  readonly language?: string | undefined
}

/** An address on the site; parameters that are undefined are left out. */
function addressOf(site: string, path: string, parameters: Readonly<Record<string, string | undefined>>) {
  let query = ''
  for (const name in parameters)
    if (parameters[name] !== undefined) query += `${query === '' ? '?' : '&'}${name}=${parameters[name]}`
  return `${site}${path}${query}`
}

export const confirmUrl = (siteUrl: string, token: string, { course, language }: PageOf = {}): string =>
  addressOf(siteUrl, PATHS.confirm, { token, course, language })

/** What a mail has of its unsubscribe link: `s` names subscription and enrolment, `t` is their HMAC, which is not stored. */
export function unsubscribeBy(
  siteUrl: string,
  keys: readonly [Secret, ...Secret[]],
  { id, enrolment, course, language }: PageOf & { readonly id: string; readonly enrolment: number },
) {
  const s = `${id}.${enrolment}`
  const t = signOf(keys[0].reveal(), s)
  const unsubscribeUrl = addressOf(siteUrl, PATHS.unsubscribe, { s, t, course, language })
  const tokens = () => keys.map((key) => signOf(key.reveal(), s))
  return { slots: { unsubscribeUrl }, unsubscribeUrl, tokens }
}

/** The page of a lesson; `t`: the signature of one that only its link opens. */
export function lessonUrl(
  siteUrl: string,
  day: number,
  { course, language, t }: PageOf & { readonly t?: string | undefined },
): string {
  return addressOf(siteUrl, PATHS.lesson.replace(':day', String(day)), { course, t, language })
}

/** Opens the page of a lesson by its name, wherever it is in the course: the same for every reader, so it names nobody. */
export const lessonSignature = (key: string, course: string, lesson: string) =>
  mac(key, `lesson:${course}:${lesson}`).slice(0, 22)

export interface LinkParts {
  readonly s: string
  readonly t: string
}

/** `ID.ENROLMENT`, as links name a subscription; undefined for any other text. */
export function readSubscription(text: string) {
  const [, id, enrolment] = /^([\w-]{8,40})\.(\d{1,9})$/.exec(text) ?? []
  return id === undefined ? undefined : { id, enrolment: Number(enrolment) }
}

/** The subscription and enrolment that a link names; undefined for a link that we did not make. */
export function readUnsubscribeLink(key: string, link: LinkParts) {
  return isSameText(link.t, signOf(key, link.s)) ? readSubscription(link.s) : undefined
}

export const opensLesson = (key: string, course: string, lesson: string, t: string) =>
  isSameText(t, lessonSignature(key, course, lesson))

/** Lets an erased address be recognised without keeping it. */
export const suppressionHash = (key: string, identity: string) => mac(key, `suppression:${identity}`)

/** All hashes that an erasure may have used: one for each key and each form of the identity. */
export const suppressionHashes = (keys: readonly Secret[], identity: string): readonly string[] =>
  keys.flatMap((key) => formsOf(identity).map((form) => suppressionHash(key.reveal(), form)))

/** `ada@xn--bcher-kva.example` → `ada@bücher.example`, as a host program may have stored it. */
export function unicodeDomain(identity: string): string {
  const at = identity.lastIndexOf('@')
  return `${identity.slice(0, at + 1)}${domainToUnicode(identity.slice(at + 1))}`
}
