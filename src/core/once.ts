/** Makes something of each object once: for the same object it gives the same. */
export function perObject<Of extends object, T>(make: (of: Of) => T): (of: Of) => T {
  const made = new WeakMap<Of, T>()
  return (of) => {
    const known = made.get(of)
    if (known !== undefined) return known
    const fresh = make(of)
    made.set(of, fresh)
    return fresh
  }
}

/** A function made by `once`. Its `opened` gives what is open already, and opens nothing. */
export type Once<T> = (() => Promise<T>) & { readonly opened: () => Promise<T | undefined> }

/** Opens at the first call and shares the result; a failed attempt is forgotten, so that the next tries again. */
export function once<T>(open: () => Promise<T>): Once<T> {
  let opening: Promise<T> | undefined
  const get = () => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }
  return Object.assign(get, { opened: async () => opening })
}
