import { OPT_OUT_KEY } from '../core/analytics/events.ts'

/** Local storage, or undefined where the browser forbids it. */
export function deviceStorage(): Storage | undefined {
  try {
    return globalThis.localStorage ?? undefined
  } catch {
    return undefined
  }
}

/**
 * May anything be recorded or reported? Read anew each time, so that an objection counts at once and in all tabs: the
 * opt-out key, or Global Privacy Control (w3.org/TR/gpc). Where storage cannot be read nobody can be asked, so: no.
 */
export function isAllowed(): boolean {
  try {
    const objection = deviceStorage()?.getItem(OPT_OUT_KEY)
    return (
      objection !== undefined &&
      [null, '', '0', 'false'].includes(objection) &&
      !(navigator as { globalPrivacyControl?: boolean }).globalPrivacyControl
    )
  } catch {
    return false
  }
}
