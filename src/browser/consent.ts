import { OPT_OUT_KEY } from '../core/analytics/events.ts'
import { PREFIX } from './buffer.ts'

/** The visitor opted out on this page: it counts here even where the storage has no room to write it down. */
let objected = false

/** Local storage, or undefined where the browser forbids it. */
export function deviceStorage(): Storage | undefined {
  try {
    return globalThis.localStorage ?? undefined
  } catch {
    return undefined
  }
}

/** Whether the visitor opted out by the opt-out key; false where storage cannot be read. */
export function hasOptedOut(): boolean {
  return objected || !/^(?:0|false|null|undefined)?$/.test(`${deviceStorage()?.getItem(OPT_OUT_KEY)}`)
}

/**
 * Opts out of analytics and error reporting in all tabs, or allows them again. In a full storage the oldest events make
 * room for an objection.
 */
export function setOptOut(out: boolean): void {
  objected = out
  const storage = deviceStorage()
  if (!out) storage?.removeItem(OPT_OUT_KEY)
  else if (storage && !isObjectionWritten(storage)) {
    const events = Object.keys(storage).filter((key) => key.startsWith(PREFIX))
    events.sort().some((event) => {
      storage.removeItem(event)
      return isObjectionWritten(storage)
    })
  }
}

function isObjectionWritten(storage: Storage): boolean {
  try {
    storage.setItem(OPT_OUT_KEY, '1')
    return true
  } catch {
    return false
  }
}

/**
 * May anything be recorded or reported? Read anew each time, so that an objection counts at once and in all tabs: the
 * opt-out key, or Global Privacy Control (w3.org/TR/gpc). Where storage cannot be read, consent is unknown, so the answer is no.
 */
export function isAllowed(): boolean {
  try {
    return (
      deviceStorage() !== undefined &&
      !hasOptedOut() &&
      !(navigator as { globalPrivacyControl?: boolean }).globalPrivacyControl
    )
  } catch {
    return false
  }
}
