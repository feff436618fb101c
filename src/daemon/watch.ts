import { createWakes } from '../core/course/wakes.ts'
import { alertsFiles } from '../core/daemon-places.ts'
import type { Settings } from '../core/env/settings.ts'
import type { Host } from '../core/host.ts'
import { WEB } from '../core/service.ts'
import type { History } from '../core/status/history.ts'
import type { Store } from '../core/store/store.ts'
import { within } from '../core/wait.ts'
import { alertChannels, startAlerts } from './alerts.ts'
import { watchCertificates } from './certificates.ts'
import { type Closing, giveUp } from './closing.ts'
import { createConditions } from './conditions.ts'
import { forgetOld } from './housekeeping.ts'
import { createMailSender, subscribersChannel } from './notices.ts'
import { createPing } from './ping.ts'
import type { OpenedPlatform } from './platform.ts'
import { type DaemonOptions, placesOf } from './record.ts'
import { startRecorder } from './recorder.ts'
import { startSchedule } from './schedule.ts'

export interface Running {
  readonly options: DaemonOptions
  /** Of the environment alone, without the addresses of our own listeners. */
  readonly settings: Settings
  readonly store: Store
  readonly history: History
  readonly platform: OpenedPlatform
  readonly closing: Closing
}

/** Records health each minute, with what else can be wrong, and sends alerts and notices about it. */
export function keepWatch(host: Host, { options, settings, store, history, platform, closing }: Running) {
  const { platform: definition, services, dataFolder, pointerFolder, freeSpace } = options
  const { clock, log } = host
  const { metrics, mailService, neighbours, course } = platform
  metrics.expectRounds(services)
  closing.eventLoop = metrics.watch()
  const isWeb = services.includes(WEB)
  const certificates = isWeb ? watchCertificates(host, settings, definition.services, metrics) : undefined
  closing.certificates = () => certificates?.stop()
  const looks = isWeb
    ? createConditions({
        settings,
        store,
        dataFolder,
        certificates: () => certificates?.found() ?? [],
        services,
        neighbours,
        mailRefused: mailService.refused,
        outcomes: metrics.watchOutcomes(),
        clock,
        freeSpace,
      })
    : undefined
  const mailsNotices = settings.mail !== undefined && isWeb
  const alerts = startAlerts(host, {
    store,
    platform: definition,
    settings,
    channels: [
      ...alertChannels(clock, definition, settings, placesOf(options)),
      ...(mailsNotices ? [subscribersChannel({ platform: definition, store, clock })] : []),
    ],
    held: mailService.held,
    files: alertsFiles(dataFolder, pointerFolder),
  })
  const mails = createMailSender({ store, course, clock, log })
  closing.alerts = (deadlineMs) =>
    within(
      deadlineMs,
      Promise.all([alerts.stop(), mails.sent()]).then(() => {}),
      giveUp,
    )
  const recorder = startRecorder({
    health: services.flatMap((name) => platform.services.get(name)?.health ?? []),
    neighbours,
    history,
    clock,
    log,
    onRecorded: metrics.recorded,
    async follow(reports) {
      // Counts that are lost make a day's rates look higher, and nothing else.
      await mailService.tally.flush().catch(() => {})
      const again = await alerts.follow(looks ? [...reports, await looks()] : reports)
      if (mailsNotices) {
        mails.confirmations()
        // After the operators, and waited for by nobody.
        void alerts.told().then(mails.notices)
      }
      return again
    },
  })
  closing.history = async () => {
    await recorder.stop()
    await history.close()
  }
  return recorder
}

/** Sends lessons when they are due, and forgets what is old each hour. */
export function startDispatching(host: Host, { settings, store, platform, closing }: Running) {
  const { clock, log } = host
  const { course, mailService } = platform
  const ping = settings.heartbeatPing && createPing(host, settings.heartbeatPing)
  closing.ping = () => ping?.stop()
  const wakes = createWakes({
    course,
    isDue: async () =>
      (await mailService.held('course')) === undefined && (await store.course.isDue(clock.now())),
    clock,
  })
  return startSchedule({
    ...(ping && { onDone: ping.ping }),
    store,
    clock,
    log,
    run: async (signal) => {
      await wakes.hour(signal)
      if (signal.aborted) return 'stopped'
      await forgetOld(platform, store, clock.now)
      return 'done'
    },
    minute: wakes.minute,
  })
}
