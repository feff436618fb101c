export type { Identify, Identity } from '../core/access/identity.ts'
export type { DispatchResult } from '../core/course/dispatch.ts'
export type { EnrolAnswer } from '../core/course/store.ts'
export type { Environment } from '../core/env/settings.ts'
export type { Report } from '../core/env/validate.ts'
export type { Finding } from '../core/finding.ts'
export type { HealthReport, ProbeResult, ProbeState } from '../core/health/probe.ts'
export type { Clock, Log, LogFields, Random } from '../core/host.ts'
export type { Directory, Invite, LoginRequest, PassedExam } from '../core/mail/definition.ts'
export type { Message, Outcome, Transport } from '../core/mail/mailer.ts'
export type {
  AttachmentInput,
  MailName,
  MailParts,
  MailSlots,
  MailToSend,
  SendEmail,
  SendEmailInput,
  SendEmailResult,
  SendsMail,
} from '../core/mail/send-email.ts'
export type { OnPaymentEvent, PaymentEvent } from '../core/payments/webhook.ts'
export type { Service } from '../core/service.ts'
export type { Store } from '../core/store/store.ts'
export type { CourseEnrolment, Courses } from './courses.ts'
export type { Handler, Platform, PlatformOptions } from './embedding.ts'
export { nodeListener } from './node-listener.ts'

import { type Environment, readSettings } from '../core/env/settings.ts'
import { given } from '../core/given.ts'
import type { Log, LogLevel } from '../core/host.ts'
import { isRecord, swallowFaults } from '../core/is-record.ts'
import { composeFault } from '../core/mail/mailer.ts'
import type { DefinedPlatform, PlatformDefinition } from '../platform/definition.ts'
import { resolvePlatform } from '../platform/resolve.ts'
import { learning } from '../presets/learning/platform.ts'
import type { DefaultServices, Handler, Platform, PlatformOptions } from './embedding.ts'
import { handlersOf, openPlatform as open } from './platform.ts'

/** The services that the process of a definition serves: all but other programs. */
type ServedServices<Definition> = Definition extends { readonly services: infer Services }
  ? {
      [Name in keyof Services]: Services[Name] extends { readonly format: unknown }
        ? never
        : Services[Name] extends { readonly port: unknown }
          ? Name
          : Name & PresetServices<Definition>
    }[keyof Services] &
      string
  : PresetServices<Definition>

type PresetServices<Definition> = Definition extends { readonly preset: 'base' } ? 'web' : DefaultServices

type TemplatesOf<Definition> = Definition extends { readonly templates: infer Templates }
  ? Templates
  : unknown

/**
 * Opens the platform as Request → Response handlers, one for each service that it serves (CONTRACT §8). Never throws
 * for a half-configured environment: the group is off, `validate()` says so, and its probe is degraded. Throws a
 * DefinitionError for a definition with faults. Lessons go out only by `dispatch()`, or a daemon on the same store.
 */
export function openPlatform<
  const Definition extends PlatformDefinition | DefinedPlatform = PlatformDefinition,
>(
  options: PlatformOptions & { readonly platform?: Definition },
): Platform<ServedServices<Definition>, TemplatesOf<Definition>> {
  if (!isRecord(options?.env))
    throw new TypeError('openPlatform needs the option env: process.env, or {} for an empty environment.')
  const { platform: definition, env, store, log, ...host } = options
  const parts = Object.entries(host).map(([name, part]) => [name, bound(part)])
  const platform = definition ? resolvePlatform(definition, { folder: process.cwd() }) : learning
  const opened = open({
    env,
    ...given({ store, log: log && faultless(log) }),
    ...Object.fromEntries(parts),
    platform,
  })
  const { log: told, mailService } = opened
  // Read now, as the definition was: files that change later are for the next start.
  if (mailService.mailer.configured && platform.mails.build !== undefined)
    platform.mails
      .compiled()
      .catch((error: unknown) =>
        told.error('mails_not_compiled', `no mail can be made: ${composeFault(error)}`),
      )
  // One for each service of this platform: the type computes the same names from the definition.
  const handlers: Readonly<Record<string, Handler>> = handlersOf(opened)
  // A service may be named mail.
  return {
    ...opened.operations,
    ...handlers,
    mail: { ...handlers.mail, ...opened.mail },
  } as unknown as Platform<ServedServices<Definition>, TemplatesOf<Definition>>
}

/** A part of the host may be an object of a class: its methods keep their `this` wherever they are passed on. */
function bound(part: unknown): unknown {
  if (!isRecord(part)) return part
  const get = (_: object, key: string) => (typeof part[key] === 'function' ? part[key].bind(part) : part[key])
  return new Proxy({}, { get } as ProxyHandler<object>)
}

/** A log of the host's own that can fail without harm to what is logged. */
function faultless(log: Log): Log {
  const at =
    (level: LogLevel): Log[LogLevel] =>
    (...line) =>
      swallowFaults(() => log[level](...line))
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Whether mails can be sent: a sender and a provider or server are set, with the key that it needs (CONTRACT §2). */
export function isEmailConfigured(env: Environment): boolean {
  return readSettings(learning, env).mail !== undefined
}
