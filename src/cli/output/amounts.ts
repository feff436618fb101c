/** `1.4 MB`, in powers of 1000. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  const units = ['kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length, Math.floor(Math.log10(bytes) / 3))
  return `${(bytes / 1000 ** power).toFixed(1)} ${units[power - 1]}`
}

/** `3 h ago`; the largest unit alone, because the question is "lately?". */
export function agoText(then: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - then) / 1000))
  const [size, unit] = (
    [
      [86_400, 'd'],
      [3600, 'h'],
      [60, 'min'],
    ] as const
  ).find(([least]) => seconds >= least) ?? [1, 's']
  return `${Math.floor(seconds / size)} ${unit} ago`
}
