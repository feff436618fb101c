import { hostname, userInfo } from 'node:os'
import type { Operator } from '../core/audit.ts'
import type { Environment } from '../core/env/settings.ts'

const IP = /^[\da-f.:]{2,45}$/i

/** The person at this terminal for the audit log: the user, who sudo was called by, the machine, and where SSH came from. */
export function currentOperator(env: Environment): Operator {
  const user = userName()
  const behind = env.SUDO_USER && env.SUDO_USER !== user ? ` (sudo by ${env.SUDO_USER})` : ''
  const from = env.SSH_CONNECTION?.split(' ')[0] ?? ''
  return { name: `${user}${behind}`, place: `${hostname()}${IP.test(from) ? ` (ssh from ${from})` : ''}` }
}

/** The user's name, or the id: a container may run under an id without a user. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
