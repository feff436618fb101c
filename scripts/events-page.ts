import {
  LONGEST_KEY,
  LONGEST_STRING,
  MOST_EVENTS,
  MOST_PROPERTIES,
  OPT_OUT_KEY,
} from '../src/core/analytics/events.ts'
import { NAMED_THINGS, PERSONAL_PARTS, PERSONAL_WORDS } from '../src/core/analytics/personal.ts'
import type { DropReason } from '../src/core/analytics/sanitise.ts'
import { RETENTION_DAYS } from '../src/core/analytics/store.ts'
import { base } from '../src/presets/base/platform.ts'
import { learningEvents } from '../src/presets/learning/events.ts'

const MEANING: Readonly<Record<DropReason, string>> = {
  malformed: 'the event is no object, or its properties are none',
  unknown_kind: 'the platform has no such kind',
  time_out_of_range: `the time is missing, more than a day ahead of the server’s clock, or more than ${RETENTION_DAYS} days past`,
  opted_out: 'the request carried `Sec-GPC: 1`',
  property_name:
    'the name does not begin with a letter, is too long, or is one that every object has (`constructor`)',
  property_personal:
    'the name means personal data, or the value is an e-mail address, a phone, card or account number, a token or a key by its shape, also percent-encoded or in base64',
  property_type: 'the value is no string, finite number or boolean',
  property_unknown: 'the kind lists its properties, and this is none of them',
  property_limit: `the event has more than ${MOST_PROPERTIES} properties`,
}

/** docs/reference/events.md: made from the tables of the sanitiser. */
export function eventsPage(): string {
  const code = (words: readonly string[]) => words.map((word) => `\`${word}\``).join(', ')
  return `# Events

<!-- Made by \`npm run make\`. -->

What it means for visitors: [privacy](../guides/privacy.md).

## Kinds

The default platform (preset \`learning\`) has ${code(learningEvents.map(({ name }) => name))}. The preset \`base\` has ${code(base.events.map(({ name }) => name))}. Only these and the kinds under \`events\` in your definition can be recorded. Lesson pages record \`lesson.viewed\` and \`lesson.completed\` if your platform has them: \`events: { 'lesson.viewed': { lesson: 'string' } }\`.

An event is \`{ "kind", "at", "properties" }\`: \`at\` in UTC milliseconds (or ISO 8601 with a zone), properties flat. These are the names that the dashboards of \`/insights\` read:

| Kind | Property | What it is |
|---|---|---|
| \`lesson.viewed\`, \`lesson.completed\` | \`lesson\` | number or name |
| \`exam.started\`, \`exam.completed\` | \`exam\` | name |
| \`exam.completed\` | \`passed\`, \`score\` | boolean, number |
| \`device.selected\` | \`device\` | name |
| \`tutor.rated\` | \`rating\` | number |

## Limits

| | |
|---|---|
| events in a batch | ${MOST_EVENTS} |
| properties of an event | ${MOST_PROPERTIES} |
| characters of a string | ${LONGEST_STRING}, cut on code points |
| length of a property’s name | ${LONGEST_KEY} |
| kept by the server | ${RETENTION_DAYS} days |
| opt-out key in local storage | \`${OPT_OUT_KEY}\` |

## What is left out, and counted in \`dropped\`

| Reason | When |
|---|---|
${Object.entries(MEANING)
  .map(([reason, meaning]) => `| \`${reason}\` | ${meaning} |`)
  .join('\n')}

Reasons that begin with \`property_\` cost a property; the others cost the event.

## Names that mean personal data

Case, accents, camel case and separators make no difference: \`userEmail\`, \`user-email\` and \`USER_ÉMAIL\` are one.

Anywhere in a name: ${code(PERSONAL_PARTS)}.

As a word of its own: ${code(PERSONAL_WORDS)}. A name is not personal when it is of a ${NAMED_THINGS.join(', ')}: \`lesson_name\` stays, \`teacher_name\` goes.
`
}
