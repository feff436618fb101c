import { DAY_MS } from '../durations.ts'
import type { ErrorCode } from '../errors.ts'
import { lists } from '../sentences.ts'
import { lengths } from './words.ts'

const units = ['day', 'hour', 'minute', 'second'].map((unit) => [unit, `${unit}s`] as const)
export const duration = lengths(units, 'less than a second')
const listed = lists('and')
const STAYS_GOOD = 'The link stays valid: open it again in a few minutes.'
const LATER = 'Wait a little and try again.'

/** `next` says what to do, and may hold our own links. `what` replaces the error's own sentence, in English. */
export type ErrorTexts = readonly [heading: string, next?: string, what?: string | undefined]

/** The states that the texts about incidents name. */
export type State = 'degraded' | 'failing' | 'ok' | 'skipped'

/** What the engine says to visitors and subscribers, under the same keys in each language. Mails: `templates/base`. */
export const en = {
  language: 'en',
  /** Pages of courses: `daemon/pages/pages.ts`, `daemon/routes/lesson.ts`; `confirm…` before the click, `confirmed…` after. */
  course: {
    confirmedTitle: 'Confirmed',
    confirmedHeading: 'You are subscribed',
    // No page knows when the next dispatch is, so none promises a time.
    confirmedEvery: (ms: number) =>
      ms === DAY_MS
        ? 'Your address is confirmed. Lessons come once a day, beginning with the next delivery.'
        : `Your address is confirmed. A lesson comes every ${duration(ms, 2)}, beginning with the next delivery.`,
    /** `days`: of the week, none for every day; `zone`: undefined for the subscriber's own. */
    confirmedAt: (days: readonly string[], time: string, zone: string | undefined) =>
      `Your address is confirmed. A lesson comes every ${days.length === 0 ? 'day' : listed(days)} at ${time} (${zone ?? 'in your time zone; UTC if you gave none'}).`,
    confirmedEnd: 'Every lesson has a link that ends the course.',
    confirmTitle: 'Confirm',
    confirmHeading: 'Confirm your address',
    confirm: 'One click confirms that this address is yours and starts the course.',
    confirmButton: 'Confirm',
    confirmElse: 'If you did not ask for the course, close this page and nothing happens.',
    unsubscribeTitle: 'Unsubscribe',
    unsubscribe: 'One click ends these lessons.',
    unsubscribeButton: 'Unsubscribe',
    unsubscribeElse: 'To keep getting them, close this page and nothing happens.',
    unsubscribedTitle: 'Unsubscribed',
    // A forged or broken link gets the same page, so it cannot promise more.
    unsubscribed: 'If the link was valid, you will get no more lessons of this course.',
    undo: 'Undo: keep the lessons coming',
    closePage: 'You can close this page.',
    preferencesHeading: 'Keep them, with other settings',
    language: 'Language',
    timeZone: 'Time zone',
    unchanged: 'unchanged',
    keep: 'Keep the lessons with these settings',
    preferredTitle: 'Saved',
    // As for the other links: the same for a forged one.
    preferred: 'If the link was valid, the next lessons of this course follow these settings.',
    subscribeHeading: 'Get the lessons by mail',
    subscribeLabel: 'E-mail address',
    subscribeButton: 'Subscribe',
    subscribeNote:
      'You first get a mail with a link that confirms your address. Every lesson has a link that ends the course.',
    subscribeRefusedTitle: 'Check the address',
    subscribeRefused: 'This is not a complete e-mail address. Correct it and try again.',
    subscribedTitle: 'Check your mail',
    // Known and unknown addresses get the same page, so it cannot promise more.
    subscribed: 'If this address can join the course, a mail with a link to confirm it is on its way.',
    subscribedEnd:
      'No mail after a few minutes? Look in the spam folder. At most one confirmation is mailed an hour.',
    notMailedTitle: 'Not subscribed yet',
    notMailed: 'No confirmation can be mailed at the moment. Please try again later.',
    resubscribedTitle: 'Welcome back',
    resubscribed: 'If the link was valid and nothing else ended them, the lessons go on where they stopped.',
    lessons: 'Lessons',
    lesson: (number: number) => `Lesson ${number}`,
    lessonOf: (number: number, last: number) => `lesson ${number} of ${last}`,
    heading: 'The course',
    invitation: (title: string, lessons: number) =>
      `${title}: ${lessons === 1 ? 'one lesson' : `${lessons} lessons`} by mail.`,
    readFirst: ' <a href="/lessons/1">Read the first one here</a>.',
  },
  /** Mails about incidents: `daemon/open/course.ts`. On pages, `words` replace those of a course, key by key. */
  notices: {
    words: {
      confirmedHeading: 'You are subscribed to incidents',
      confirmed:
        'Your address is confirmed. You get a mail when something fails here, and when it works again.',
      confirmedEnd: 'Every mail has a link that ends them.',
      confirm: 'One click confirms that this address is yours and subscribes it to incidents.',
      confirmElse: 'If you did not ask for this, close this page and nothing happens.',
      unsubscribe: 'One click ends the mails about incidents.',
      unsubscribed: 'If the link was valid, you will get no more mails about incidents.',
      undo: 'Undo: keep these mails coming',
      subscribeHeading: 'Get incident updates by mail',
      subscribeNote:
        'A mail when something fails, when it works again, and when maintenance is planned. You first get a link that confirms your address; every mail has a link that ends them.',
      subscribed: 'If this address can subscribe, a mail with a link to confirm it is on its way.',
      resubscribed: 'If the link was valid and nothing else ended them, you get mails about incidents again.',
    },
    openedTitle: (platform: string, what: string) => `${platform}: ${what} is not working`,
    opened: (what: string, means: string) => `${what} is not working at the moment. ${means}`,
    /** The effect on users while one of the engine's probes fails. */
    means: {
      datastore: 'Signing in may fail.',
      payments: 'Buying may fail.',
      mail: 'Mails may come late.',
      store: 'Subscribing may fail, and mails may come late.',
    } as Readonly<Record<string, string>>,
    meansOther: 'Features that depend on it may fail too.',
    since: (from: string) => `Since ${from}.`,
    closedTitle: (platform: string, what: string) => `${platform}: ${what} works again`,
    closed: (what: string) => `${what} works again.`,
    goneTitle: (platform: string, what: string) => `${platform}: ${what} is no longer checked`,
    gone: (what: string) => `${what} is no longer checked. It was not working when it was last checked.`,
    lasted: (from: string, to: string, ms: number) =>
      `It was not working from ${from} to ${to}, for ${duration(ms)}.`,
    announcedTitle: (platform: string, headline: string) => `${platform}: ${headline}`,
    updateTitle: (platform: string, what: string | undefined) =>
      `${platform}: update${what === undefined ? '' : ` on ${what}`}`,
  },
  /** Around the text of a mail, if its template does not say: `core/mail/compile/compile.ts`. */
  mail: {
    unsubscribe: 'Unsubscribe',
    readLesson: 'Read it in your browser',
    becauseLesson: 'You get these lessons because you are in this course.',
    because: 'You get this mail because you gave us this address.',
  },
  /** The first lesson of a course that `init --course` makes, in Markdown. */
  firstLesson: {
    subject: 'Welcome to the course',
    body: `# Welcome

This is the first lesson. The next one is a file of its own in this folder, 2-something.md: lessons are sent in the order of these numbers.`,
  },
  /** Error pages: `daemon/http/problem.ts`. */
  errors: {
    start: '<a href="/">To the start page</a>.',
    line: (status: number, requestId: string) => `Error ${status} · request ${requestId}`,
    codes: {
      bad_request: ['That did not work'],
      token_invalid: ['This link does not work'],
      token_expired: ['This link has expired'],
      signature_invalid: ['That did not work'],
      challenge_failed: ['Please try once more'],
      unauthenticated: ['Sign in to continue', 'Sign in and try again.'],
      locked: ['This is locked', 'Your plan does not cover it.'],
      not_found: ['There is nothing here', 'The address may be mistyped or out of date.'],
      method_not_allowed: ['That is not possible here'],
      request_timeout: ['That took too long', LATER],
      conflict: ['That did not work', LATER],
      payload_too_large: ['The request is too large'],
      uri_too_long: ['This address is too long', 'It may be mistyped.'],
      unsupported_media_type: ['That did not work'],
      rate_limited: ['A little slower, please', LATER],
      headers_too_large: ['The request is too large'],
      internal: ['Something went wrong', 'This is our fault. It is logged under the number below.'],
      unavailable: ['Not available just now', LATER],
      store_not_persistent: ['Not available here'],
      store_unavailable: ['Not available just now', `Nothing was changed. ${LATER}`],
      payments_not_configured: ['Payments are not set up here', 'Everything that is free works.'],
    } satisfies Record<ErrorCode, ErrorTexts> as Readonly<Record<ErrorCode, ErrorTexts>>,
    forPrograms: [
      'This address is for programs',
      'See the <a href="/openapi.json">API description</a>.',
    ] as ErrorTexts,
    noLesson: ['There is no such lesson', 'Here are <a href="/lessons">all lessons</a>.'] as ErrorTexts,
    noLessons: ['There are no lessons here'] as ErrorTexts,
    operatorsOnly: ['For operators', 'The <a href="/">status page</a> is open to everybody.'] as ErrorTexts,
    /** The error's own sentence says that the link does not work; the heading says what that means. */
    linkInvalid: ['Not confirmed'] as ErrorTexts,
    linkExpired: ['Not confirmed'] as ErrorTexts,
    notConfirmedYet: ['Not confirmed yet', STAYS_GOOD] as ErrorTexts,
    courseClosed: ['Not confirmed yet'] as ErrorTexts,
    notUnsubscribedYet: ['Not unsubscribed yet', STAYS_GOOD] as ErrorTexts,
    notCharged: ['Not available just now', `Nothing was charged. ${LATER}`] as ErrorTexts,
  },
  /** The status page: `daemon/pages/status`, and `core/status/words.ts` for its headline. */
  status: {
    title: 'Status',
    /** Names of the engine's own probes. Probes of a definition have labels. */
    probes: {} as Readonly<Record<string, string>>,
    /** The effect of leaving one of the engine's groups unconfigured. Default: the contract's own words. */
    absent: {} as Readonly<Record<string, string>>,
    /** Sentences for visitors while one of these groups is not configured. Default: the contract's own words. */
    visitors: {} as Readonly<Record<string, string>>,
    addressNotSet: 'not checked, as its address is not set',
    nothingDependsOnIt: 'nothing depends on it',
    states: { ok: 'ok', degraded: 'degraded', failing: 'failing', skipped: 'off', unknown: 'no data' },
    days: { ok: 'ok', degraded: 'degraded', failing: 'failing', none: 'without data' },
    badge: {
      label: 'status',
      ok: 'all working',
      degraded: 'working, with limits',
      failing: 'failing',
      skipped: 'off',
      unknown: 'no data',
    },
    noHistory: 'No history is recorded yet',
    silentFor: (ms: number) => `Nothing has been recorded for ${duration(ms)}`,
    areFailing: (names: readonly string[]) => `${listed(names)} ${names.length === 1 ? 'is' : 'are'} failing`,
    unknown: (names: readonly string[]) => `No current data for ${listed(names)}; everything else works`,
    areDegraded: (names: readonly string[]) =>
      `Everything works, with limits: ${listed(names)} ${names.length === 1 ? 'is' : 'are'} degraded`,
    works: 'Everything works',
    lastDays: (days: number) => `The last ${days} days, by the worst of each day`,
    barsMean: 'What the bars mean',
    barsOf: (days: number, counts: string) => `The last ${days} days: ${counts}`,
    since: (ms: number) => `for ${duration(ms)} · `,
    checked: (ago: string) => `checked ${ago}`,
    sampleHistory: (until: string) =>
      `<strong>Sample history.</strong> The demo made up everything before ${until}; what follows is real.`,
    notRecorded:
      'This page shows what <code>platformctl daemon</code> records each minute. Here the platform runs inside another program, which records nothing.',
    recordedInMemory: 'The history is kept in memory and ends with the process: its file cannot be written.',
    firstCheck: 'The first check is under way.',
    skew: (builds: readonly string[]) => `The services run different builds: ${listed(builds)}.`,
    seenFrom: (service: string) => `as seen from ${service}`,
    build: (name: string) => `build ${name}`,
    firstSeen: (ago: string) => `, first seen ${ago}`,
    unstamped: 'unstamped',
    versionsDiffer: 'The services run different versions at the moment.',
    operatorView:
      '<strong>Operator view.</strong> Reasons, addresses and builds are shown. <a href="/">Back to the public page</a>',
    off: (count: number) => (count === 1 ? 'One feature is off' : `${count} features are off`),
    responseTimes: 'Response times, last 24 hours',
    /** For a witness, which fills in `{…}`. */
    kept: 'The platform cannot be reached. This page shows its status as of {time}.',
    /** For the page's script, which fills in `{…}`. */
    script: {
      stale: 'This page is {age} old and could not be refreshed. It tries again each minute.',
      days: 'Days of {name}',
      ok: 'no trouble',
      degraded: 'degraded for {time}',
      failing: 'failing for {time}',
      none: 'no data',
      reading: 'reading …',
      unread: 'the details cannot be read now',
      hours: 'Response times of {name}',
      half: 'half within {time}',
      most: '95 of 100 within {time}',
      found: '{count} of {all} services',
    },
    mail: {
      heading: (days: number) => `Mail, last ${days} days`,
      hardBounces: 'Hard bounces',
      softBounces: 'Soft bounces',
      complaints: 'Complaints',
      rate: (name: string, percent: string, count: number, sent: number, limit: string) =>
        `${name}: ${percent} (${count} of ${sent} messages). Courses pause at ${limit} in 24 hours.`,
      paused: (since: string, reason: string) =>
        `<strong>Courses are paused</strong> since ${since}: ${reason}. <code>platformctl course resume</code> resumes them.`,
      mailPaused: (streams: string, since: string, reason: string) =>
        `<strong>Mail is paused</strong> (${streams}) since ${since}: ${reason}. <code>platformctl mail resume</code> resumes it.`,
      byDay: 'By day',
      day: 'Day',
      sent: 'Sent',
      more: '<code>platformctl email feedback status</code> shows the rates by source and recipient domain.',
    },
    uptime: (percent: string) => `${percent} uptime`,
    daysAgo: (days: number) => `${days} days ago`,
    today: 'today',
    probe: 'Probe',
    part: 'Part',
    dayColumn: 'Days',
    uptimeColumn: 'Uptime',
    planned: (from: string, to: string | undefined) =>
      to === undefined ? `Planned from ${from}.` : `Planned from ${from} to ${to}.`,
    description: (platform: string) =>
      `What works at ${platform} right now, and the incidents of the last 90 days.`,
    services: 'Services',
    filter: 'Filter',
    onlyTrouble: 'only those with trouble',
    otherServices: 'Other services',
    countOk: (all: number) => (all === 1 ? 'ok' : `all ${all} ok`),
    countTrouble: (count: number, all: number) => `${count} of ${all} with trouble`,
    subscribe: 'Subscribe',
    calendar: 'Add to calendar',
    calendarLink: 'Calendar of maintenance',
    calendarTitle: (name: string) => `${name}: maintenance and announcements`,
    announcements: { planned: 'Planned', current: 'Announcement', resolved: 'Resolved' },
    sinceMoment: (moment: string) => `since ${moment}`,
    fromMoment: (moment: string) => `from ${moment}`,
    incidents: 'Incidents',
    allIncidents: (count: number) => `All ${count} incidents`,
    timeline: 'Timeline',
    began: 'Began',
    ended: 'Ended',
    feltBy: (names: readonly string[]) => `felt by ${listed(names)}`,
    seenFromClause: (probe: string, services: readonly string[]) =>
      `${probe}, as seen from ${listed(services)},`,
    more: (count: number) => `${count} more`,
    goesOn: (what: string, state: State, since: string) => `${what} has been ${state} since ${since}`,
    beganEnded: (from: string, to: string) => `Began ${from}, ended ${to}.`,
    beganGoesOn: (from: string) => `Began ${from}, still ongoing.`,
    updateStates: {
      identified: 'Identified',
      monitoring: 'Monitoring',
      resolved: 'Resolved',
      postmortem: 'Post-mortem',
      update: 'Update',
    },
    feedTitle: (name: string) => `${name}: incidents`,
    hasBeen: (state: State, ms: number) => `has been ${state} for ${duration(ms)}`,
    was: (state: State, ms: number) => `was ${state} for ${duration(ms)}`,
    noIncidents: (when: string) => `None ${when}.`,
    moreIncidents: (count: number) => `${count} more in <a href="/status.json">status.json</a>.`,
    inLastDays: (days: number) => `in the last ${days} days`,
    sinceRecord: (moment: string) => `since the record began (${moment})`,
    notConfigured: 'Not configured',
    notConfiguredLead: 'Every integration is optional. Without these, the platform works like this:',
    footRecorded:
      'Recorded once a minute. Time without a record is no data, and not uptime; degraded counts as up. Days are in UTC.',
    footNothing: 'Nothing is recorded here.',
    feedLink: 'Atom feed',
    badgeLink: 'Badge',
    healthLink: 'Health',
    detailsLink: 'Details for operators',
  },
  /** The page of insights: `daemon/routes/insights.ts`. */
  insights: {
    title: 'Insights',
    lead: 'What you did here, drawn from this browser’s own storage. This page sends nothing.',
    noScript: 'This page needs JavaScript to draw its charts, and JavaScript is off in this browser.',
    fresh: 'Nothing is recorded in this browser yet.',
    showSample: 'Show sample data',
    sampleTitle: 'Sample data.',
    sample: 'Nothing here is real, and nothing is stored.',
    hideSample: 'Hide sample data',
    controls: 'Filters',
    range: 'Range',
    ranges: { '7': 'last 7 days', '30': 'last 30 days', '90': 'last 90 days', '': 'everything' },
    kind: 'Kind',
    allKinds: 'all kinds',
    tiles: {
      total: 'events',
      'active-days': 'active days',
      'current-streak': 'current streak, in days',
      'longest-streak': 'longest streak, in days',
    },
    did: 'What you did',
    activity: 'Activity',
    activityChart: 'Bar chart of events per day',
    asTable: 'Show as a table',
    activityTable: 'Events per day, as a table',
    own: 'Your data',
    export: 'Export',
    delete: 'Delete…',
    record: 'Record my activity in this browser',
    askTitle: 'Delete your data?',
    ask: 'This removes all events from this browser and cannot be undone. Export them first to keep a copy.',
    confirmDelete: 'Delete',
    keep: 'Keep',
    start: 'Go to the start page',
    /** Texts of the page's script: plain text, because they are sent as JSON. */
    script: {
      chart: 'Bar chart of {count} events per day',
      chartDays: ' from {first} to {last}',
      chartTable: '; the table below has the same numbers.',
      sampled: '{caption} (sample data)',
      noStorage: 'This browser blocks storage here, so nothing is recorded.',
      off: 'Nothing is recorded and no errors are reported.',
      on: 'Events are recorded in this browser.',
      gpc: 'Your browser sends Global Privacy Control, so nothing is recorded and no errors are reported.',
      none: 'This browser holds no events.',
      some: 'This browser holds {events}.',
      exported: 'Exported {events}.',
      deleted: 'Your data was deleted from this browser.',
      event: '1 event',
      events: '{count} events',
      byDay: 'Events on each day',
      byKind: 'Events of each kind',
      day: 'Day',
      what: 'What',
      eventsHead: 'Events',
      number: 'Number',
      emptyRange: 'No event in this range.',
      unnamed: '(unnamed)',
    },
    /** Names of the engine's own event kinds, where the platform gives none. */
    kinds: { 'page.viewed': 'Pages viewed', 'course.subscribed': 'Course subscribed' } as Readonly<
      Record<string, string>
    >,
  },
  time: {
    /** Monday first. */
    weekdays: ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'],
  },
}

export type Messages = typeof en
