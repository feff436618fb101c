import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Environment } from '../core/env/settings.ts'
import type { Log } from '../core/host.ts'

/**
 * Sends systemd the messages of a service of Type=notify (sd_notify(3)). Speaks over NOTIFY_SOCKET through `systemd-notify`, because Node has no datagram sockets of that kind; the unit needs
 * NotifyAccess=all, because the messages come from a child process. With WatchdogSec= it reports twice per period that
 * the event loop is running. Without NOTIFY_SOCKET it does nothing.
 */
export function notifySystemd({ env, log }: { readonly env: Environment; readonly log: Log }) {
  if (!env.NOTIFY_SOCKET) return { ready(_: string) {}, stopping() {}, close: async () => {} }
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
      .then(async () => {
        const child = spawn('systemd-notify', words, {
          env: { NOTIFY_SOCKET: socket, ...(env.PATH && { PATH: env.PATH }) },
          stdio: 'ignore',
        })
        const [code]: unknown[] = await once(child, 'exit')
        if (code !== 0) fail()
      })
      .catch(fail)
  }
  const period = Number(env.WATCHDOG_USEC) / 1000
  const watchdog = period > 0 ? setInterval(() => say('WATCHDOG=1'), period / 2) : undefined
  return {
    ready: (status: string) => say('READY=1', `STATUS=${status}`),
    stopping: () => say('STOPPING=1', 'STATUS=stopping'),
    /** Waits until the pending messages are delivered. */
    close() {
      clearInterval(watchdog)
      return said
    },
  }
}
