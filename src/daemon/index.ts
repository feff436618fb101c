export type { Directory, Invite, LoginRequest, PassedExam } from '../core/access/directory.ts'
export type { Identify, Identity } from '../core/access/identity.ts'
export type { Clock } from '../core/clock.ts'
export type { DispatchResult } from '../core/course/course.ts'
export type { Environment } from '../core/env/settings.ts'
export type { Report } from '../core/env/validate.ts'
export type { Finding } from '../core/finding.ts'
export type { HealthReport, ProbeResult, ProbeState } from '../core/health/probe.ts'
export type { Log, LogFields } from '../core/log.ts'
export type { TemplateName } from '../core/mail/catalog.ts'
export type { SendEmail, SendEmailInput, SendEmailResult } from '../core/mail/send-email.ts'
export type { Message, Outcome, Transport } from '../core/mail/transport.ts'
export type { OnPaymentEvent, PaymentEvent } from '../core/payments/webhook.ts'
export type { Random } from '../core/random.ts'
export type { Service } from '../core/service.ts'
export type { Store } from '../core/store/store.ts'
export type { Handler, Platform, PlatformOptions } from './embedding.ts'
export { nodeListener } from './node-listener.ts'

import { readSettings } from '../core/env/read-settings.ts'
import type { Environment } from '../core/env/settings.ts'
import { learning } from '../presets/learning/platform.ts'
import type { Platform, PlatformOptions } from './embedding.ts'
import { handlersOf, openPlatform as open } from './platform.ts'

/**
 * Opens the platform as Request → Response handlers (CONTRACT §8). Never throws for a half-configured
 * environment: the group is off, `validate()` says so, and its probe is degraded.
 */
export function openPlatform(options: PlatformOptions): Platform {
  const platform = open({ platform: learning, ...options })
  // One for each service of the platform that was given; the type names those of the default one.
  return { ...platform, ...handlersOf(platform) } as unknown as Platform
}

/** Whether mails would be sent: the key is set, and with it a sender and one address to send by (CONTRACT §2). */
export function isEmailConfigured(env: Environment): boolean {
  return readSettings(learning, env).mail !== undefined
}
