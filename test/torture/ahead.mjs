// Preloaded before the built command: its clocks go so much ahead that every lease of the life before has run out.
const ahead = Number(process.env.CLOCK_AHEAD_MS ?? 0)
const [now, sinceBoot] = [Date.now, process.hrtime.bigint]
Date.now = () => now() + ahead
process.hrtime.bigint = () => sinceBoot() + BigInt(ahead) * 1_000_000n
