import type { JWTPayload, JWTVerifyGetKey } from 'jose'
import { isAcceptedSecret } from '../accepted-secret.ts'
import { parseAddress } from '../address.ts'
import { once } from '../calls.ts'
import type { Settings, TokenVerification } from '../env/settings.ts'
import { codeOf, PlatformError } from '../errors.ts'
import type { Clock } from '../host.ts'
import { isRecord } from '../is-record.ts'
import { boundedBody, proxiedFetch } from '../network/proxy.ts'
import type { RotatingSecret } from '../secret.ts'

/** The sender of a request: a person with an account, or a back end of the platform's own (the service role). */
export type Identity =
  | {
      readonly kind: 'person'
      /** The account's stable id (RFC 7519 §4.1.2). */
      readonly subject: string
      readonly email: string
    }
  | { readonly kind: 'service' }

/** The sender of a request. Rejects with `unavailable` if the token cannot be verified now. */
export type Identify = (request: Request) => Promise<Identity | undefined>

/** RFC 7519 §4.1.4: "usually no more than a few minutes"; machines with NTP differ by less than this. */
const CLOCK_TOLERANCE_SECONDS = 5
const JWKS_DEADLINE_MS = 3000
const KEY_LIFE_MS = 10 * 60 * 1000
/** A key has less than 1 KB, and a server has a few at a time. */
const LARGEST_KEY_SET_BYTES = 128 * 1024
const LONGEST_SUBJECT = 255
/** A token that never ends is a password nobody can take back, so the limit stays. The service key, which the back end keeps, lives for years. */
const LONGEST_LIFE_SECONDS = 7 * 24 * 3600
/** With a key set the algorithm must be an asymmetric one: a public key taken for an HMAC secret is the classic forgery. */
// biome-ignore format: a list of names is read as a text
const KEY_SET_ALGORITHMS = [
  'ES256', 'ES384', 'ES512', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'EdDSA', 'Ed25519',
]

const NO_KEYS = 'The keys that tokens are verified with cannot be had now; try again later.'

/** The audience and issuer that every token must name if they are set, even one of the service role. */
type Claims = Partial<Settings['identity']>

/** Verifies `Authorization: Bearer` JWTs as the datastore signs them (CONTRACT §4, Identity). */
export function jwtIdentify(
  clock: Pick<Clock, 'now'>,
  tokens: TokenVerification | undefined,
  claims: Claims = {},
  keyLifeMs = KEY_LIFE_MS,
  /** Told at each token whether there are keys: without any, every token is refused. */
  heardOfKeys: (available: boolean) => void = () => {},
): Identify {
  if (tokens === undefined) return async () => undefined
  // Loaded at the first token: a daemon that nobody signs in to never pays for it.
  const verifier = once(() => openVerifier(clock, tokens, claims, keyLifeMs, heardOfKeys))
  return async (request) => {
    const token = /^Bearer ([\w-]{1,2048}\.[\w-]{1,8192}\.[\w-]{1,2048})$/i.exec(
      request.headers.get('authorization') ?? '',
    )?.[1]
    if (token === undefined) return undefined
    try {
      return identityOf(await (await verifier())(token), clock.now())
    } catch (error) {
      if (isTokenFault(error)) return undefined
      throw new PlatformError('unavailable', NO_KEYS, { cause: error })
    }
  }
}

async function openVerifier(
  clock: Pick<Clock, 'now'>,
  tokens: TokenVerification,
  { audience, issuer }: Claims,
  keyLifeMs: number,
  heardOfKeys: (available: boolean) => void,
): Promise<(token: string) => Promise<JWTPayload>> {
  const jose = await import('jose')
  const dated = () => ({
    algorithms: tokens.kind === 'secret' ? ['HS256'] : KEY_SET_ALGORITHMS,
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
    requiredClaims: ['exp'],
    ...(audience !== undefined && { audience }),
    ...(issuer !== undefined && { issuer }),
    currentDate: new Date(clock.now()),
  })
  if (tokens.kind === 'secret') {
    const keys = tokens.secret.accepted.map((one) => new TextEncoder().encode(one.reveal()))
    return async (token) => {
      let fault: unknown = new TypeError('a secret holds at least one value')
      // An older secret is tried only if the newest did not make the signature.
      for (const key of keys) {
        try {
          return (await jose.jwtVerify(token, key, dated())).payload
        } catch (error) {
          if (!(error instanceof jose.errors.JWSSignatureVerificationFailed)) throw error
          fault = error
        }
      }
      throw fault
    }
  }
  const remote = jose.createRemoteJWKSet(new URL(tokens.url), {
    timeoutDuration: JWKS_DEADLINE_MS,
    cacheMaxAge: keyLifeMs,
    [jose.customFetch]: async (url, init) => {
      const response = await proxiedFetch(url, init)
      return new Response(await boundedBody(response.body, LARGEST_KEY_SET_BYTES), response)
    },
  })
  // An outage of the key server signs nobody out: its last keys are used until it is back.
  const keys: JWTVerifyGetKey = async (header, token) => {
    try {
      const key = await remote(header, token)
      heardOfKeys(true)
      return key
    } catch (error) {
      const last = remote.jwks()
      heardOfKeys(last !== undefined)
      if (last === undefined || isTokenFault(error)) throw error
      return jose.createLocalJWKSet(last)(header, token)
    }
  }
  return async (token) => (await jose.jwtVerify(token, keys, dated())).payload
}

/** Is it one of jose's errors about a bad token? Any other is a fault of ours or of the key server. */
const isTokenFault = (error: unknown) =>
  /^ERR_(?:JOSE_(?:ALG_NOT_ALLOWED|NOT_SUPPORTED)$|JWKS_(?:NO|MULTIPLE)_MATCHING_KEY|JW[ST]_)/.test(
    codeOf(error),
  )

/** The service role needs no person; everybody else needs a subject, an address of their own and an expiry within a week. */
function identityOf(claims: Readonly<Record<string, unknown>>, now: number): Identity | undefined {
  if (claims.role === 'service_role') return { kind: 'service' }
  const { role, sub, email, exp, is_anonymous: isAnonymous = false } = claims
  if (typeof exp !== 'number' || exp > now / 1000 + LONGEST_LIFE_SECONDS + CLOCK_TOLERANCE_SECONDS)
    return undefined
  // Strictly: a claim that is present and not plainly true was not verified, and `anon` is nobody's role.
  // `email_verified` can be in the claims themselves, or in what the datastore knows of the account.
  const accounts = [claims, claims.user_metadata, claims.app_metadata]
  if (role === 'anon' || isAnonymous !== false || !accounts.every(isVerified)) return undefined
  if (typeof sub !== 'string' || typeof email !== 'string') return undefined
  return parseIdentity({ kind: 'person', subject: sub, email })
}

function isVerified(claims: unknown): boolean {
  const { email_verified: verified } = isRecord(claims) ? claims : {}
  return verified === undefined || verified === true
}

/** An identity from outside, checked against what the platform can mail and store; undefined if it cannot be used. */
export function parseIdentity(identity: Identity | undefined): Identity | undefined {
  // A host without types may give null, or leave a field out.
  const { kind, subject, email } = Object(identity) as Partial<Record<'kind' | 'subject' | 'email', unknown>>
  if (kind === 'service') return { kind }
  if (typeof subject !== 'string' || typeof email !== 'string') return undefined
  const address = parseAddress(email)
  if (!address.ok || subject === '' || subject.length > LONGEST_SUBJECT) return undefined
  return { kind: 'person', subject, email: address.mailbox.address }
}

/** The bearer token of a request, if it has the form of one. */
export function bearerOf(request: Request): string | undefined {
  return /^Bearer ([\x21-\x7e]{1,4096})$/i.exec(request.headers.get('authorization') ?? '')?.[1]
}

/** Whether the Authorization header has this secret as a bearer token. Without a secret, nothing can authenticate. */
export function hasBearer(request: Request, secret: RotatingSecret | undefined): boolean {
  return isAcceptedSecret(bearerOf(request), secret)
}

/** Whether the secret is the password of `Authorization: Basic` (RFC 7617), which a browser asks its user for. */
export function hasBasicPassword(request: Request, secret: RotatingSecret | undefined): boolean {
  const given = /^Basic ([A-Za-z0-9+/]{1,8192}={0,2})$/i.exec(request.headers.get('authorization') ?? '')?.[1]
  const pair = given === undefined ? undefined : Buffer.from(given, 'base64').toString('utf8')
  return isAcceptedSecret(pair?.includes(':') ? pair.slice(pair.indexOf(':') + 1) : undefined, secret)
}

/**
 * The host's own check that a person subscribes (a captcha, a proof of work): false refuses the request. `response` is
 * what the form sent as `challenge`, `client` the key that rate limits count by, `value` gives a variable.
 */
export type Challenge = (asked: {
  readonly response: string | undefined
  readonly email: string
  readonly client: string
  readonly value: Settings['value']
}) => boolean | Promise<boolean>
