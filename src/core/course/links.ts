import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { domainToUnicode } from 'node:url'
import { formsOf } from '../address.ts'
import { ROUTES } from '../routes.ts'
import type { Secret } from '../secret.ts'

/** A confirmation token, made again for each attempt to mail it: only its SHA-256 is stored. */
export function confirmationToken(key: string, message: string): string {
  return createHmac('sha256', key).update(`confirmation:${message}`).digest('base64url')
}

export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url')
}

/** `course`: the one that the page says the times of; undefined for the platform's first. */
export function confirmUrl(siteUrl: string, token: string, course?: string): string {
  return `${siteUrl}${ROUTES.confirm.path}?token=${token}${course === undefined ? '' : `&course=${course}`}`
}

/** `s` names subscription and enrolment, `t` is their HMAC: nothing about it is stored. `course` only chooses the words of the page. */
export function unsubscribeUrl(
  siteUrl: string,
  key: string,
  subscription: string,
  enrolment: number,
  course?: string,
): string {
  const s = `${subscription}.${enrolment}`
  return `${siteUrl}${ROUTES.unsubscribe.path}?s=${s}&t=${sign(key, s)}${course === undefined ? '' : `&course=${course}`}`
}

/** The subscription that a link names, or undefined for a link that we did not make. */
export function readUnsubscribeLink(
  key: string,
  link: { readonly s: string; readonly t: string },
): { readonly id: string; readonly enrolment: number } | undefined {
  const match = /^([A-Za-z0-9_-]{8,40})\.(\d{1,9})$/.exec(link.s)
  const expected = Buffer.from(sign(key, link.s))
  const given = Buffer.alloc(expected.length)
  given.write(link.t.slice(0, expected.length))
  const genuine = timingSafeEqual(expected, given) && link.t.length === expected.length
  return match?.[1] !== undefined && match[2] !== undefined && genuine
    ? { id: match[1], enrolment: Number(match[2]) }
    : undefined
}

function sign(key: string, s: string): string {
  return createHmac('sha256', key).update(`unsubscribe:${s}`).digest('base64url')
}

/** Lets an erased address be recognised without keeping it. */
export function suppressionHash(key: string, identity: string): string {
  return createHmac('sha256', key).update(`suppression:${identity}`).digest('base64url')
}

/** All hashes that an erasure may have used: one for each key and each form of the identity. */
export function suppressionHashes(keys: readonly Secret[], identity: string): readonly string[] {
  return keys.flatMap((key) => formsOf(identity).map((form) => suppressionHash(key.reveal(), form)))
}

/** `ada@xn--bcher-kva.example` → `ada@bücher.example`, as a host program may have stored it. */
export function unicodeDomain(identity: string): string {
  const at = identity.lastIndexOf('@')
  return `${identity.slice(0, at + 1)}${domainToUnicode(identity.slice(at + 1))}`
}
