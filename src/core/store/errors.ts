/** The store could not be opened: one sentence with the fix. */
export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError'
}

/** What a caller reads while a store cannot be used. */
export const UNAVAILABLE = 'The store cannot be read or written now; try again later.'

/** Maintenance was refused or failed, and nothing was changed. The message gives the reason in one sentence. */
export class StoreMaintenanceError extends Error {
  override readonly name = 'StoreMaintenanceError'
}

const saying =
  <Fault>(Kind: new (text: string, options?: ErrorOptions) => Fault, options?: ErrorOptions) =>
  (texts: TemplateStringsArray, ...values: readonly unknown[]): Fault =>
    new Kind(String.raw({ raw: texts }, ...values), options)

/** Tags of templates, which make an error of the sentence: throw refusal`${file} exists.` */
export const cannotOpen = saying(StoreOpenError)
export const refusal = saying(StoreMaintenanceError)
export const cannotOpenFor = (cause: unknown) => saying(StoreOpenError, { cause })
export const refusalFor = (cause: unknown) => saying(StoreMaintenanceError, { cause })
