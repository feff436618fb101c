// Preloaded before the built command: its wall clock goes so much ahead that every lease of the life before has run out.
const ahead = Number(process.env.CLOCK_AHEAD_MS ?? 0)
const real = Date.now
Date.now = () => real() + ahead
