/** An executable that holds the package in itself; its boot script, scripts/executable/boot.ts, says so. */
export interface Embedded {
  /** Stands for the package’s folder. No file can be below it, because it is the executable. */
  readonly root: string
  /** Undefined if there is no such file. */
  read(file: string): Uint8Array | undefined
  names(folder: string): readonly string[]
  /** An expression that gives a thread the SQLite driver. */
  readonly driver: string
}

export const EMBEDDED = Symbol.for('platformctl.embedded')
export const embedded = (globalThis as { [EMBEDDED]?: Embedded })[EMBEDDED]
