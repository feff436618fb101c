/** The source of node-cron with what it asks of Intl answered from Date in UTC. Throws where the source has changed. */
export function inUtcWithoutIcu(code: string): string {
  return `${beginning(
    beginning(code, 'function getPartsFormatter(timezone) {', "if (timezone === 'UTC') return UTC;"),
    'function getTimezoneGMT(date, timezone) {',
    "if (timezone === 'UTC') return 'Z';",
  )}
const UTC = {
  formatToParts(date) {
    const [year, month, day, hour, minute, second] = date.toISOString().match(/\\d+/g);
    const weekday = date.toUTCString().slice(0, 3);
    return Object.entries({ year, month, day, hour, minute, second, weekday }).map(([type, value]) => ({ type, value }));
  },
};
`
}

function beginning(code: string, head: string, first: string): string {
  if (!code.includes(head)) throw new Error(`node-cron has changed: it has no \`${head}\` any more`)
  return code.replace(head, `${head} ${first}`)
}
