import { DAY_MS } from '../durations.ts'
import { lists } from '../sentences.ts'
import type { Messages } from './en.ts'
import { lengths } from './words.ts'

const none = 'weniger als eine Sekunde'
const hour = ['Stunde', 'Stunden'] as const
const minute = ['Minute', 'Minuten'] as const
const second = ['Sekunde', 'Sekunden'] as const
const duration = lengths({ units: [['Tag', 'Tage'], hour, minute, second], none })
/** Lengths of time in the dative, for `seit` and `vor`. */
const dative = lengths({
  units: [['Tag', 'Tagen'], hour, minute, second],
  none: 'weniger als einer Sekunde',
})
const listed = lists('und')

const STORE = 'Der Speicher ist gerade nicht erreichbar.'
const STAYS_GOOD = 'Der Link bleibt gültig: Öffnen Sie ihn in ein paar Minuten noch einmal.'
const LATER = 'Warten Sie einen Augenblick und versuchen Sie es noch einmal.'
const FAILED = 'Das hat nicht geklappt'
const TOO_LARGE = 'Das ist zu viel auf einmal'
const NOT_NOW = 'Gerade nicht verfügbar'
const SIGN_IN = 'Ohne gültige Anmeldung geht es hier nicht weiter.'
const EXPIRED = 'Dieser Link ist abgelaufen. Melden Sie sich noch einmal an, dann bekommen Sie einen neuen.'
const INVALID = 'Dieser Link gilt nicht. Nehmen Sie den neuesten, oder melden Sie sich noch einmal an.'

const lessonCount = (lessons: number) => (lessons === 1 ? 'eine Lektion' : `${lessons} Lektionen`)
const STATE = { ok: 'in Ordnung', degraded: 'eingeschränkt', failing: 'gestört', skipped: 'aus' } as const

/** Where each text is shown: `en.ts`. German mails: `templates/base/de`. */
export const de: Messages = {
  language: 'de',
  course: {
    confirmedTitle: 'Bestätigt',
    confirmedHeading: 'Sie sind dabei',
    confirmedEvery: (ms) =>
      ms === DAY_MS
        ? 'Ihre Adresse ist bestätigt. Jeden Tag kommt eine Lektion; die erste mit dem nächsten Versand.'
        : `Ihre Adresse ist bestätigt. Alle ${duration(ms, 2)} kommt eine Lektion; die erste mit dem nächsten Versand.`,
    confirmedAt: (days, time, zone) =>
      `Ihre Adresse ist bestätigt. Jeden ${days.length === 0 ? 'Tag' : listed(days)} um ${time} Uhr (${zone ?? 'in Ihrer Zeitzone; UTC, wenn Sie keine angegeben haben'}) kommt eine Lektion.`,
    confirmedEnd: 'In jeder Lektion steht ein Link, der den Kurs mit einem Klick beendet.',
    confirmTitle: 'Bestätigen',
    confirmHeading: 'Bestätigen Sie Ihre Adresse',
    confirm: 'Ein Klick bestätigt, dass diese Adresse Ihnen gehört, und startet den Kurs.',
    confirmButton: 'Bestätigen',
    confirmElse: 'Wenn Sie den Kurs nicht bestellt haben, schließen Sie diese Seite; dann geschieht nichts.',
    unsubscribeTitle: 'Abmelden',
    unsubscribe: 'Ein Klick beendet diese Lektionen.',
    unsubscribeButton: 'Abmelden',
    unsubscribeElse: 'Wenn Sie nichts ändern möchten, schließen Sie diese Seite.',
    unsubscribedTitle: 'Abgemeldet',
    unsubscribed: 'Wenn der Link vollständig war, bekommen Sie keine weiteren Lektionen.',
    undo: 'Rückgängig: Lektionen weiter schicken',
    unsubscribedEnd: 'Sie können diese Seite schließen.',
    preferencesHeading: 'Behalten, mit anderen Einstellungen',
    language: 'Sprache',
    timeZone: 'Zeitzone',
    unchanged: 'unverändert',
    keep: 'Die Lektionen mit diesen Einstellungen behalten',
    preferredTitle: 'Gespeichert',
    preferred: 'Wenn der Link vollständig war, richten sich die nächsten E-Mails danach.',
    subscribeHeading: 'Die Lektionen per E-Mail bekommen',
    subscribeLabel: 'E-Mail-Adresse',
    subscribeButton: 'Anmelden',
    subscribeNote:
      'Zuerst bekommen Sie eine E-Mail mit einem Link, der Ihre Adresse bestätigt. In jeder Lektion steht ein Link, der den Kurs beendet.',
    subscribeRefusedTitle: 'Bitte prüfen Sie die Adresse',
    subscribeRefused:
      'Das ist keine vollständige E-Mail-Adresse. Berichtigen Sie sie und versuchen Sie es noch einmal.',
    subscribedTitle: 'Sehen Sie in Ihr Postfach',
    subscribed:
      'Wenn diese Adresse am Kurs teilnehmen kann, ist eine E-Mail mit einem Link zur Bestätigung unterwegs.',
    subscribedEnd:
      'Nach ein paar Minuten noch nichts? Sehen Sie im Spam-Ordner nach. Höchstens einmal in der Stunde wird ein Link verschickt.',
    notMailedTitle: 'Noch nicht angemeldet',
    notMailed: 'Gerade kann keine Bestätigung verschickt werden. Bitte versuchen Sie es später noch einmal.',
    notMailedEnd: 'Sie können diese Seite schließen.',
    resubscribedTitle: 'Willkommen zurück',
    resubscribed:
      'Wenn der Link vollständig war, geht es mit den Lektionen dort weiter, wo sie aufgehört haben.',
    lessons: 'Lektionen',
    lesson: (number) => `Lektion ${number}`,
    lessonOf: (number, last) => `Lektion ${number} von ${last}`,
    heading: 'Der Kurs',
    invitation: (title, lessons) => `${title}: ${lessonCount(lessons)} per E-Mail.`,
    readFirst: ' <a href="/lessons/1">Die erste gleich hier lesen</a>.',
  },
  notices: {
    words: {
      confirmedHeading: 'Sie erfahren von Störungen',
      confirmed:
        'Ihre Adresse ist bestätigt. Sie bekommen eine E-Mail, wenn hier etwas ausfällt und wenn es wieder funktioniert.',
      confirmedEnd: 'In jeder E-Mail steht ein Link, der sie mit einem Klick abbestellt.',
      confirm: 'Ein Klick bestätigt, dass diese Adresse Ihnen gehört, und abonniert Störungsmeldungen.',
      confirmElse: 'Wenn Sie das nicht wollten, schließen Sie diese Seite; dann geschieht nichts.',
      unsubscribe: 'Ein Klick beendet die Störungsmeldungen.',
      unsubscribed: 'Wenn der Link vollständig war, bekommen Sie keine weiteren Störungsmeldungen.',
      undo: 'Rückgängig: Störungsmeldungen weiter schicken',
      subscribeHeading: 'Störungen per E-Mail erfahren',
      subscribeNote:
        'Eine E-Mail, wenn etwas ausfällt, wenn es wieder funktioniert und wenn Wartungsarbeiten geplant sind. Zuerst bekommen Sie einen Link, der Ihre Adresse bestätigt; in jeder E-Mail steht ein Link zum Abbestellen.',
      subscribed:
        'Wenn diese Adresse noch nicht angemeldet ist, ist eine E-Mail mit einem Link zur Bestätigung unterwegs.',
      resubscribed: 'Wenn der Link vollständig war, bekommen Sie wieder Störungsmeldungen.',
    },
    openedTitle: (platform, what) => `${platform}: ${what} gestört`,
    opened: (what, means) => `Gestört ist zurzeit: ${what}. ${means}`,
    means: {
      datastore: 'Die Anmeldung kann fehlschlagen.',
      payments: 'Käufe können fehlschlagen.',
      mail: 'E-Mails können später kommen.',
      store: 'Abonnieren kann fehlschlagen, und E-Mails können später kommen.',
    },
    meansOther: 'Was davon abhängt, kann ebenfalls ausfallen.',
    since: (from) => `Seit ${from}.`,
    closedTitle: (platform, what) => `${platform}: ${what} funktioniert wieder`,
    closed: (what) => `Es funktioniert wieder: ${what}.`,
    lasted: (from, to, ms) => `Die Störung dauerte ${duration(ms)}, von ${from} bis ${to}.`,
    announcedTitle: (platform, headline) => `${platform}: ${headline}`,
    updateTitle: (platform, what) => `${platform}: Neues${what === undefined ? '' : ` zu ${what}`}`,
  },
  mail: {
    unsubscribe: 'Abmelden',
    readLesson: 'Im Browser lesen',
    becauseLesson: 'Sie bekommen diese Lektionen, weil Sie an diesem Kurs teilnehmen.',
    because: 'Sie bekommen diese E-Mail, weil Sie uns diese Adresse gegeben haben.',
  },
  firstLesson: {
    subject: 'Willkommen im Kurs',
    body: `# Willkommen

Das ist die erste Lektion. Die nächste ist eine eigene Datei in diesem Ordner, 2-irgendwas.md: Lektionen werden in der Reihenfolge dieser Nummern verschickt.`,
  },
  errors: {
    start: '<a href="/">Zur Startseite</a>.',
    line: (status, requestId) => `Fehler ${status} · Anfrage ${requestId}`,
    codes: {
      bad_request: [FAILED, '', 'Die Anfrage hat nicht die erwartete Form.'],
      token_invalid: ['Dieser Link gilt nicht', '', INVALID],
      token_expired: ['Dieser Link ist abgelaufen', '', EXPIRED],
      signature_invalid: [FAILED, '', 'Die Signatur passt nicht zum Inhalt oder ist älter als fünf Minuten.'],
      challenge_failed: [
        'Bitte noch einmal',
        'Versuchen Sie es noch einmal.',
        'Die Prüfung dieses Formulars wurde nicht bestanden.',
      ],
      unauthenticated: [
        'Melden Sie sich an',
        'Melden Sie sich an und versuchen Sie es noch einmal.',
        SIGN_IN,
      ],
      locked: ['Das ist gesperrt', '', 'Ihr Tarif umfasst es nicht, oder das Kontingent ist aufgebraucht.'],
      not_found: [
        'Hier ist nichts',
        'Vielleicht ist die Adresse vertippt oder veraltet.',
        'Unter dieser Adresse gibt es keine Seite.',
      ],
      method_not_allowed: ['Das geht hier nicht', '', 'Diese Art von Anfrage ist hier nicht vorgesehen.'],
      request_timeout: [
        'Das hat zu lange gedauert',
        LATER,
        'Die Anfrage kam nicht rechtzeitig vollständig an.',
      ],
      conflict: [FAILED, LATER, 'Der jetzige Zustand lässt das nicht zu.'],
      payload_too_large: [TOO_LARGE, '', 'Die Anfrage ist größer als erlaubt.'],
      uri_too_long: [
        'Diese Adresse ist zu lang',
        'Vielleicht ist sie vertippt.',
        'So lange Adressen gibt es hier nicht.',
      ],
      unsupported_media_type: [FAILED, '', 'Dieses Format wird hier nicht angenommen.'],
      rate_limited: ['Bitte etwas langsamer', LATER, 'Das waren zu viele Anfragen in kurzer Zeit.'],
      headers_too_large: [TOO_LARGE, '', 'Die Kopfzeilen der Anfrage sind zu viele oder zu lang.'],
      internal: [
        'Etwas ist schiefgegangen',
        'Unter der Nummer unten steht es in unserem Protokoll.',
        'Der Fehler liegt bei uns.',
      ],
      unavailable: [NOT_NOW, LATER, 'Etwas, das dafür gebraucht wird, ist gerade nicht erreichbar.'],
      store_not_persistent: [
        'Hier nicht verfügbar',
        '',
        'Dafür braucht es einen dauerhaften Speicher, und hier gibt es keinen.',
      ],
      store_unavailable: [NOT_NOW, `Es wurde nichts geändert. ${LATER}`, STORE],
      payments_not_configured: [
        'Zahlungen sind hier nicht eingerichtet',
        'Alles Kostenlose funktioniert.',
        'Hier kann noch nichts bezahlt werden.',
      ],
    },
    forPrograms: [
      'Diese Adresse ist für Programme',
      '<a href="/openapi.json">Was sie annimmt</a>.',
      'Im Browser lässt sie sich nicht öffnen.',
    ],
    noLesson: [
      'Diese Lektion gibt es nicht',
      'Hier sind <a href="/lessons">alle Lektionen</a>.',
      'Vielleicht ist der Link unvollständig.',
    ],
    noLessons: ['Hier gibt es keine Lektionen', '', 'Sie kommen nur per E-Mail.'],
    operatorsOnly: [
      'Nur für den Betrieb',
      'Die <a href="/">Statusseite</a> steht allen offen.',
      'Gründe und Adressen gibt es nur mit dem Token der Gesundheitsprüfung.',
    ],
    linkInvalid: ['Nicht bestätigt', '', INVALID],
    linkExpired: ['Nicht bestätigt', '', EXPIRED],
    notConfirmedYet: ['Noch nicht bestätigt', STAYS_GOOD, STORE],
    notUnsubscribedYet: ['Noch nicht abgemeldet', STAYS_GOOD, STORE],
    notCharged: [NOT_NOW, `Es wurde nichts berechnet. ${LATER}`, 'Der Zahlungsdienst ist nicht erreichbar.'],
  },
  status: {
    title: 'Status',
    probes: {
      datastore: 'Datenbank',
      payments: 'Zahlungen',
      mail: 'E-Mail',
      store: 'Speicher',
      sharedstore: 'Gemeinsamer Speicher',
      errortrack: 'Fehlerberichte',
      configuration: 'Konfiguration',
      analytics: 'Statistik',
      limiter: 'Zugriffsgrenzen',
    },
    absent: {
      datastore: 'niemand kann sich anmelden',
      payments: 'Preise werden gezeigt, bezahlt werden kann nichts',
      mail: 'E-Mails werden nicht verschickt',
      sharedstore: 'jeder Prozess zählt Anfragen für sich',
      errortrack: 'Fehler werden an niemanden gemeldet',
      analytics: 'Ereignisse bleiben auf dem Gerät',
    },
    visitors: {
      datastore: 'Konten sind aus: Niemand kann sich anmelden.',
      payments: 'Zahlungen sind aus: Es lässt sich nichts kaufen.',
      mail: 'E-Mail ist aus: Es werden keine Nachrichten verschickt.',
      analytics: 'Die Statistik ist aus: Was Sie hier tun, bleibt auf Ihrem Gerät.',
    },
    addressNotSet: 'nicht geprüft, da die Adresse nicht gesetzt ist',
    nothingDependsOnIt: 'nichts hängt davon ab',
    states: { ...STATE, unknown: 'keine Daten' },
    days: { ok: 'in Ordnung', degraded: 'eingeschränkt', failing: 'gestört', none: 'ohne Daten' },
    noData: 'keine Daten',
    badge: {
      label: 'Status',
      ok: 'alles in Ordnung',
      degraded: 'eingeschränkt',
      failing: 'gestört',
      skipped: 'aus',
      unknown: 'keine Daten',
    },
    noHistory: 'Noch ist nichts aufgezeichnet',
    silentFor: (ms) => `Seit ${dative(ms)} ist nichts aufgezeichnet`,
    areFailing: (names) => `${names.length === 1 ? 'Gestört ist' : 'Gestört sind'} ${listed(names)}`,
    unknown: (names) => `Von ${listed(names)} ist gerade nichts bekannt; alles andere funktioniert`,
    areDegraded: (names) =>
      `Alles funktioniert, aber eingeschränkt ${names.length === 1 ? 'ist' : 'sind'} ${listed(names)}`,
    works: 'Alles funktioniert',
    lastDays: (days) => `Die letzten ${days} Tage, jeder nach seinem schlechtesten Zustand`,
    barsMean: 'Was die Balken bedeuten',
    barsOf: (days, counts) => `Die letzten ${days} Tage: ${counts}`,
    since: (ms) => `seit ${dative(ms)} · `,
    checked: (ago) => `geprüft ${ago}`,
    sampleHistory: (until) =>
      `<strong>Beispieldaten.</strong> Alles vor ${until} hat die Vorführung erfunden; danach ist es echt.`,
    notRecorded:
      'Diese Seite zeigt, was <code>platformctl daemon</code> jede Minute aufzeichnet. Hier läuft die Plattform in einem anderen Programm, das nichts aufzeichnet.',
    recordedInMemory:
      'Die Aufzeichnung lässt sich nicht in ihrer Datei speichern: Sie bleibt im Arbeitsspeicher und endet mit dem Prozess.',
    firstCheck: 'Die erste Prüfung läuft.',
    skew: (builds) => `Die Dienste laufen in verschiedenen Versionen: ${listed(builds)}.`,
    seenFrom: (service) => `gesehen von ${service}`,
    build: (name) => `Version ${name}`,
    firstSeen: (ago) => `, zuerst gesehen ${ago}`,
    unstamped: 'ohne Stempel',
    versionsDiffer: 'Die Dienste laufen gerade in verschiedenen Versionen.',
    operatorView:
      '<strong>Ansicht für den Betrieb.</strong> Gründe, Adressen und Versionen sind zu sehen. <a href="/">Zurück zur öffentlichen Seite</a>',
    off: (count) => (count === 1 ? 'Eine Funktion ist aus' : `${count} Funktionen sind aus`),
    responseTimes: 'Antwortzeiten der letzten 24 Stunden',
    kept: 'Die Plattform ist nicht erreichbar. Diese Seite zeigt ihren Zustand von {time}.',
    script: {
      stale:
        'Diese Seite ist {age} alt und ließ sich nicht auffrischen. Jede Minute wird es wieder versucht.',
      days: 'Tage von {name}',
      ok: 'keine Störung',
      degraded: '{time} eingeschränkt',
      failing: '{time} gestört',
      none: 'keine Daten',
      reading: 'wird gelesen …',
      unread: 'Einzelheiten sind gerade nicht zu lesen',
      hours: 'Antwortzeiten von {name}',
      half: 'die Hälfte in {time}',
      most: '95 von 100 in {time}',
      found: '{count} von {all} Diensten',
    },
    mail: {
      heading: (days) => `Mail, letzte ${days} Tage`,
      hardBounces: 'Unzustellbar',
      softBounces: 'Vorläufig unzustellbar',
      complaints: 'Beschwerden',
      rate: (name, percent, count, sent, limit) =>
        `${name}: ${percent} (${count} von ${sent} Nachrichten). Bei ${limit} in 24 Stunden pausieren die Kurse.`,
      paused: (since, reason) =>
        `<strong>Die Kurse pausieren</strong> seit ${since}: ${reason}. <code>platformctl course resume</code> setzt sie fort.`,
      mailPaused: (streams, since, reason) =>
        `<strong>Der Mailversand pausiert</strong> (${streams}) seit ${since}: ${reason}. <code>platformctl mail resume</code> setzt ihn fort.`,
      byDay: 'Nach Tagen',
      day: 'Tag',
      sent: 'Gesendet',
      more: '<code>platformctl email feedback status</code> zeigt die Anteile nach Quelle und Domain der Empfänger.',
    },
    uptime: (percent) => `${percent} verfügbar`,
    daysAgo: (days) => `vor ${days} Tagen`,
    today: 'heute',
    probe: 'Prüfung',
    part: 'Teil',
    dayColumn: 'Tage',
    uptimeColumn: 'Verfügbar',
    planned: (from, to) => (to === undefined ? `Geplant ab ${from}.` : `Geplant von ${from} bis ${to}.`),
    description: (platform) =>
      `Was bei ${platform} gerade funktioniert, und die Störungen der letzten 90 Tage.`,
    services: 'Dienste',
    filter: 'Filtern',
    onlyTrouble: 'nur die mit Störungen',
    otherServices: 'Andere Dienste',
    countOk: (all) => (all === 1 ? 'in Ordnung' : `alle ${all} in Ordnung`),
    countTrouble: (count, all) => `${count} von ${all} mit Störungen`,
    subscribe: 'Abonnieren',
    calendar: 'In den Kalender',
    calendarLink: 'Wartungskalender',
    calendarTitle: (name) => `${name}: Wartung und Ankündigungen`,
    announcements: { planned: 'Geplant', current: 'Ankündigung', resolved: 'Erledigt' },
    sinceMoment: (moment) => `seit ${moment}`,
    fromMoment: (moment) => `ab ${moment}`,
    incidents: 'Störungen',
    allIncidents: (count) => `Alle ${count} Störungen`,
    timeline: 'Verlauf',
    began: 'Beginn',
    ended: 'Ende',
    feltBy: (names) => `zu spüren bei ${listed(names)}`,
    seenFromClause: (probe, services) => `${probe}, gesehen von ${listed(services)},`,
    more: (count) => `${count} weitere`,
    goesOn: (what, state, since) => `${what} ist ${STATE[state]} seit ${since}`,
    beganEnded: (from, to) => `Begonnen ${from}, beendet ${to}.`,
    beganGoesOn: (from) => `Begonnen ${from}; es dauert an.`,
    updateStates: {
      identified: 'Ursache bekannt',
      monitoring: 'Unter Beobachtung',
      resolved: 'Behoben',
      postmortem: 'Nachbericht',
      update: 'Neuigkeit',
    },
    feedTitle: (name) => `${name}: Störungen`,
    hasBeen: (state, ms) => `ist seit ${dative(ms)} ${STATE[state]}`,
    was: (state, ms) => `war ${duration(ms)} lang ${STATE[state]}`,
    noIncidents: (when) => `Keine ${when}.`,
    moreIncidents: (count) => `${count} weitere in <a href="/status.json">status.json</a>.`,
    inLastDays: (days) => `in den letzten ${days} Tagen`,
    sinceRecord: (moment) => `seit Beginn der Aufzeichnung (${moment})`,
    notConfigured: 'Nicht eingerichtet',
    notConfiguredLead: 'Jede Anbindung ist freiwillig. Ohne diese arbeitet die Plattform so:',
    footRecorded:
      'Jede Minute wird aufgezeichnet. Zeit ohne Aufzeichnung zählt als „keine Daten“ und nicht als verfügbar; eingeschränkt zählt als verfügbar. Tage sind in UTC.',
    footNothing: 'Hier wird nichts aufgezeichnet.',
    feedLink: 'Atom-Feed',
    badgeLink: 'Plakette',
    healthLink: 'Zustand',
    insightsLink: 'Einblicke',
    detailsLink: 'Einzelheiten für den Betrieb',
  },
  insights: {
    title: 'Einblicke',
    lead: 'Was Sie hier getan haben, gezeichnet aus dem Speicher dieses Browsers. Nichts auf dieser Seite verlässt Ihr Gerät.',
    noScript:
      'Diese Seite braucht JavaScript für ihre Diagramme, und in diesem Browser ist es ausgeschaltet.',
    fresh: 'In diesem Browser ist noch nichts aufgezeichnet.',
    showSample: 'Beispieldaten zeigen',
    sampleTitle: 'Beispieldaten.',
    sample: 'Nichts davon ist echt, und nichts wird gespeichert.',
    hideSample: 'Beispieldaten ausblenden',
    controls: 'Filter',
    range: 'Zeitraum',
    ranges: { '7': 'letzte 7 Tage', '30': 'letzte 30 Tage', '90': 'letzte 90 Tage', '': 'alles' },
    kind: 'Art',
    allKinds: 'alle Arten',
    tiles: {
      total: 'Ereignisse',
      'active-days': 'aktive Tage',
      'current-streak': 'Tage in Folge, bis jetzt',
      'longest-streak': 'Tage in Folge, längste Reihe',
    },
    did: 'Was Sie getan haben',
    activity: 'Aktivität',
    activityChart: 'Balkendiagramm der Ereignisse je Tag',
    asTable: 'Als Tabelle zeigen',
    activityTable: 'Ereignisse je Tag, als Tabelle',
    own: 'Ihre Daten',
    export: 'Exportieren',
    delete: 'Löschen …',
    record: 'Meine Aktivität in diesem Browser aufzeichnen',
    askTitle: 'Ihre Daten löschen?',
    ask: 'Das entfernt alle Ereignisse aus diesem Browser und lässt sich nicht rückgängig machen. Exportieren Sie sie vorher, wenn Sie sie behalten wollen.',
    confirmDelete: 'Löschen',
    keep: 'Behalten',
    start: 'Zur Startseite',
    script: {
      chart: 'Balkendiagramm mit {count} Ereignissen je Tag',
      chartDays: ' vom {first} bis {last}',
      chartTable: '; die Tabelle darunter hat dieselben Zahlen.',
      sampled: '{caption} (Beispieldaten)',
      noStorage: 'Dieser Browser sperrt hier den Speicher, daher wird nichts aufgezeichnet.',
      off: 'Nichts wird aufgezeichnet, und keine Fehler werden gemeldet.',
      on: 'Ereignisse werden in diesem Browser aufgezeichnet.',
      gpc: 'Ihr Browser sendet Global Privacy Control, daher wird nichts aufgezeichnet, und keine Fehler werden gemeldet.',
      none: 'In diesem Browser sind keine Ereignisse.',
      some: 'In diesem Browser: {events}.',
      exported: '{events} exportiert.',
      deleted: 'Ihre Daten sind aus diesem Browser gelöscht.',
      event: '1 Ereignis',
      events: '{count} Ereignisse',
      byDay: 'Ereignisse an jedem Tag',
      byKind: 'Ereignisse jeder Art',
      day: 'Tag',
      what: 'Was',
      eventsHead: 'Ereignisse',
      number: 'Anzahl',
      emptyRange: 'Kein Ereignis in diesem Zeitraum.',
      unnamed: '(ohne Namen)',
    },
    kinds: { 'page.viewed': 'Aufgerufene Seiten', 'course.subscribed': 'Kurs bestellt' },
  },
  time: { weekdays: ['Montag', 'Dienstag', 'Mittwoch', 'Donnerstag', 'Freitag', 'Samstag', 'Sonntag'] },
}
