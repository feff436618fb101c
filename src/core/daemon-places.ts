import path from 'node:path'
import type { Environment } from './env/environment.ts'

/** Where the daemon of a data folder describes itself. */
export function recordFile(folder: string): string {
  return path.join(folder, 'daemon.json')
}

/**
 * Where the daemon of a data folder keeps incidents while its store fails; the second is used where the first cannot be
 * written, as on a full disk.
 */
export function alertsFiles(folder: string, pointerFolder?: string): readonly string[] {
  const named = encodeURIComponent(path.resolve(folder)).slice(-200)
  return [
    path.join(folder, 'alerts.json'),
    ...(pointerFolder === undefined ? [] : [path.join(pointerFolder, `alerts-${named}.json`)]),
  ]
}

/** The machine's folder for pointers; it is emptied when the machine restarts. */
const RUN = '/run/platformctl'

/** The folders in which commands look for pointers to running daemons. */
export function pointerFolders(env: Environment): readonly string[] {
  const own = stateFolder(env)
  return [...(own === undefined ? [] : [own]), ...(process.platform === 'win32' ? [] : [RUN])]
}

/** The folder in which a daemon of this user leaves its pointer; undefined if there is none. */
export function ownPointerFolder(env: Environment): string | undefined {
  const isService = process.geteuid?.() === 0 || env.RUNTIME_DIRECTORY === RUN
  return isService && !env.XDG_STATE_HOME ? RUN : stateFolder(env)
}

function stateFolder({ LOCALAPPDATA, XDG_STATE_HOME, HOME }: Environment): string | undefined {
  const base =
    process.platform === 'win32'
      ? LOCALAPPDATA
      : XDG_STATE_HOME || (HOME && path.join(HOME, '.local', 'state'))
  return base && path.isAbsolute(base) ? path.join(base, 'platformctl', 'daemons') : undefined
}
