/** The store could not be opened: one sentence with the fix. */
export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError'
}

/** Maintenance was refused or failed, and nothing was changed. The message gives the reason in one sentence. */
export class StoreMaintenanceError extends Error {
  override readonly name = 'StoreMaintenanceError'
}
