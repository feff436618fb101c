/**
 * A file's disk did not confirm a write, so nothing in it is trusted: it has closed itself, everything asked of it is
 * `store_unavailable`, and only opening it anew (best in a new process) makes it usable again.
 */
export type OnLost = (cause: unknown) => void
