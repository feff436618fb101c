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
