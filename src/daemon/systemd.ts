import { spawn } from 'node:child_process'
import type { Environment } from '../core/env/environment.ts'
import type { Log } from '../core/log.ts'

/** The messages to systemd of a service of Type=notify (sd_notify(3)). */
export interface SystemdNotifier {
  ready(status: string): void
  stopping(): void
  /** Waits until the pending messages are delivered. */
  close(): Promise<void>
}

/**
 * Speaks over NOTIFY_SOCKET through `systemd-notify`, because Node has no datagram sockets of that kind; the unit needs
 * NotifyAccess=all, because the messages come from a child process. With WatchdogSec= it reports twice per period that
 * the event loop is running. Without NOTIFY_SOCKET it does nothing.
 */
export function notifySystemd({
  env,
  log,
}: {
  readonly env: Environment
  readonly log: Log
}): SystemdNotifier {
  if (!env.NOTIFY_SOCKET) return { ready() {}, stopping() {}, close: async () => {} }
  const socket = env.NOTIFY_SOCKET
  let said = Promise.resolve()
  let warned = false
  const fail = () => {
    if (warned) return
    warned = true
    log.warn(
      'systemd_not_notified',
      'systemd-notify could not tell systemd about this service: install it, or use Type=exec',
    )
  }
  // One after the other: systemd takes them in the order in which they arrive.
  const say = (...words: string[]) => {
    said = said
      .then(
        () =>
          new Promise<void>((resolve) => {
            const child = spawn('systemd-notify', words, {
              env: { NOTIFY_SOCKET: socket, ...(env.PATH && { PATH: env.PATH }) },
              stdio: 'ignore',
            })
            child.once('error', () => {
              fail()
              resolve()
            })
            child.once('exit', (code) => {
              if (code !== 0) fail()
              resolve()
            })
          }),
      )
      // Some spawn errors are thrown instead of emitted.
      .catch(fail)
  }
  const period = Number(env.WATCHDOG_USEC) / 1000
  const watchdog = period > 0 ? setInterval(() => say('WATCHDOG=1'), period / 2) : undefined
  return {
    ready: (status) => say('READY=1', `STATUS=${status}`),
    stopping: () => say('STOPPING=1', 'STATUS=stopping'),
    close() {
      clearInterval(watchdog)
      return said
    },
  }
}
