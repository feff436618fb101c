/** `47 s`, `12 min 5 s`, `1 h 20 min`. */
export function seconds(value: number): string {
  const whole = Math.round(value)
  if (whole < 90) return `${whole} s`
  if (whole < 5400) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`
}
