/** Steps of the schema, in order: never edited once released, only added to, and additive so that the build before still runs. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE subscription (
    id TEXT PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    address TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('unconfirmed', 'confirmed', 'unsubscribed')),
    enrolment INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    confirmed_at INTEGER,
    unsubscribed_at INTEGER,
    sent_days TEXT NOT NULL DEFAULT '[]',
    next_attempt_at INTEGER,
    first_attempt_at INTEGER,
    claimed_by TEXT,
    claimed_at INTEGER,
    fence INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    problem_kind TEXT,
    problem_reason TEXT,
    problem_since INTEGER
  ) STRICT;
  CREATE INDEX subscription_due ON subscription ((failures > 0), next_attempt_at) WHERE next_attempt_at IS NOT NULL;
  CREATE INDEX subscription_problem ON subscription (problem_since) WHERE problem_kind IS NOT NULL;
  CREATE TABLE confirmation (
    token_hash TEXT PRIMARY KEY,
    subscription TEXT NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    used_at INTEGER,
    replaced INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX confirmation_subscription ON confirmation (subscription, created_at);
  CREATE TABLE suppression (hash TEXT PRIMARY KEY, created_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE handled_hour (hour TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  `,
  // Accounts (docs/directory.md says what a host keeps in them), mails sent for them, events of the payments provider.
  `
  CREATE TABLE organisation (id TEXT PRIMARY KEY, name TEXT NOT NULL, locked_at INTEGER) STRICT, WITHOUT ROWID;
  CREATE TABLE organisation_admin (
    organisation TEXT NOT NULL REFERENCES organisation (id) ON DELETE CASCADE,
    subject TEXT NOT NULL,
    PRIMARY KEY (organisation, subject)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE organisation_invite (
    id TEXT PRIMARY KEY,
    organisation TEXT NOT NULL REFERENCES organisation (id) ON DELETE CASCADE,
    address TEXT NOT NULL,
    url TEXT NOT NULL,
    closed_at INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE login_request (
    id TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    url TEXT NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE exam_attempt (
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    exam TEXT NOT NULL,
    score_percent INTEGER NOT NULL CHECK (score_percent BETWEEN 0 AND 100),
    url TEXT NOT NULL,
    passed_at INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE sent_mail (key TEXT PRIMARY KEY, first_attempt_at INTEGER NOT NULL, sent_id TEXT) STRICT, WITHOUT ROWID;
  CREATE TABLE payment_event (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    claimed_until INTEGER NOT NULL,
    handled_at INTEGER
  ) STRICT, WITHOUT ROWID;
  `,
  // Caps for each recipient.
  `
  ALTER TABLE sent_mail ADD COLUMN recipient TEXT;
  CREATE INDEX sent_mail_recipient ON sent_mail (recipient, first_attempt_at) WHERE recipient IS NOT NULL;
  `,
  // Claimed lessons, longest in hand first: finds expired leases without reading the other lessons.
  'CREATE INDEX subscription_claimed ON subscription (first_attempt_at, next_attempt_at) WHERE claimed_at IS NOT NULL;',
  // An hour that is being handled; null: done.
  'ALTER TABLE handled_hour ADD COLUMN claimed_until INTEGER;',
  // A key that all spellings of a mailbox share, for the caps; indexes for the platform's daily count and for
  // addresses never confirmed.
  `
  ALTER TABLE subscription ADD COLUMN mailbox_key TEXT;
  CREATE INDEX subscription_mailbox ON subscription (mailbox_key) WHERE mailbox_key IS NOT NULL;
  CREATE INDEX confirmation_created ON confirmation (created_at);
  CREATE INDEX subscription_unconfirmed ON subscription (created_at) WHERE state = 'unconfirmed';
  `,
  // The history of each subscription, for its subscriber and for operators who are asked about it.
  `
  CREATE TABLE subscription_event (
    subscription TEXT NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    enrolment INTEGER NOT NULL,
    day INTEGER NOT NULL,
    attempt INTEGER,
    outcome TEXT,
    reason TEXT,
    message_id TEXT,
    provider_id TEXT,
    PRIMARY KEY (subscription, at, kind, day)
  ) STRICT, WITHOUT ROWID;
  `,
  // Confirmation mails to try again.
  `CREATE INDEX subscription_event_failed ON subscription_event (at) WHERE kind = 'confirmation' AND outcome = 'transient';`,
  // The end of a lease by a clock that is never set.
  'ALTER TABLE subscription ADD COLUMN lease_until INTEGER;',
  // Recipients were hashed without a key: their caps start anew.
  'UPDATE sent_mail SET recipient = NULL WHERE recipient IS NOT NULL;',
  // The audit log of operators' actions; entries are never changed.
  `
  CREATE TABLE audit (
    at INTEGER NOT NULL,
    id TEXT NOT NULL,
    action TEXT NOT NULL,
    who TEXT NOT NULL,
    place TEXT NOT NULL,
    subject TEXT,
    details TEXT,
    PRIMARY KEY (at, id)
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
  CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
  `,
  // Feedback from providers and mail servers: each event once, and the state of each mailbox, suppressed or
  // not.
  `
  CREATE TABLE feedback_event (key TEXT PRIMARY KEY, received_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX feedback_event_received ON feedback_event (received_at);
  CREATE TABLE mailbox (
    identity TEXT PRIMARY KEY,
    soft_bounces INTEGER NOT NULL DEFAULT 0,
    soft_since INTEGER,
    soft_until INTEGER,
    delivered_at INTEGER,
    cause TEXT,
    suppressed_at INTEGER,
    source TEXT,
    reason TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX mailbox_suppressed ON mailbox (suppressed_at, identity) WHERE cause IS NOT NULL;
  INSERT INTO mailbox (identity, cause, suppressed_at, source, reason)
    SELECT identity, 'hard-bounce', problem_since, 'send', problem_reason FROM subscription WHERE problem_kind = 'bounced';
  ALTER TABLE subscription_event ADD COLUMN source TEXT;
  `,
  // Counts of mail sent and reported, by minute for the breaker and by day for operators; the breaker's
  // state; the pace.
  `
  CREATE TABLE mail_minute (minute INTEGER NOT NULL, kind TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (minute, kind)) STRICT, WITHOUT ROWID;
  CREATE TABLE mail_day (
    day TEXT NOT NULL,
    source TEXT NOT NULL,
    domain TEXT NOT NULL,
    kind TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (day, source, domain, kind)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE breaker (name TEXT PRIMARY KEY, paused_at INTEGER, reason TEXT, resumed_at INTEGER) STRICT, WITHOUT ROWID;
  CREATE TABLE pace (name TEXT PRIMARY KEY, next_us INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  `,
  // Several courses: one row per enrolment. Existing rows belong to the only course there was: seven lessons,
  // one a day.
  `
  ALTER TABLE subscription ADD COLUMN course TEXT NOT NULL DEFAULT 'quantum';
  ALTER TABLE subscription ADD COLUMN person TEXT;
  ALTER TABLE subscription ADD COLUMN course_version TEXT;
  ALTER TABLE subscription ADD COLUMN lessons INTEGER NOT NULL DEFAULT 7;
  ALTER TABLE subscription ADD COLUMN due_at INTEGER;
  ALTER TABLE subscription ADD COLUMN last_sent_at INTEGER;
  ALTER TABLE subscription ADD COLUMN time_zone TEXT;
  ALTER TABLE subscription ADD COLUMN language TEXT;
  CREATE INDEX subscription_person ON subscription (person) WHERE person IS NOT NULL;
  ALTER TABLE confirmation ADD COLUMN time_zone TEXT;
  ALTER TABLE confirmation ADD COLUMN language TEXT;
  CREATE TABLE course_plan (course TEXT NOT NULL, version TEXT NOT NULL, plan TEXT NOT NULL, PRIMARY KEY (course, version)) STRICT, WITHOUT ROWID;
  CREATE TABLE enrol_request (
    key TEXT PRIMARY KEY,
    subscription TEXT NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    enrolment INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX enrol_request_subscription ON enrol_request (subscription);
  `,
  // Incidents, the alerts sent about them, and silences.
  `
  CREATE TABLE incident (
    id TEXT PRIMARY KEY,
    cause TEXT NOT NULL,
    service TEXT NOT NULL,
    reason TEXT,
    affected TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    closed_at INTEGER,
    acknowledged_at INTEGER,
    acknowledged_by TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX incident_open ON incident (cause) WHERE closed_at IS NULL;
  CREATE INDEX incident_opened ON incident (opened_at);
  CREATE TABLE alert_message (
    incident TEXT NOT NULL,
    kind TEXT NOT NULL,
    channel TEXT NOT NULL,
    outcome TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    at INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    claimed_until INTEGER NOT NULL,
    reason TEXT,
    PRIMARY KEY (incident, kind, channel)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX alert_message_at ON alert_message (at);
  CREATE TABLE silence (from_at INTEGER PRIMARY KEY, until_at INTEGER NOT NULL, reason TEXT NOT NULL, who TEXT NOT NULL) STRICT;
  `,
  // Heartbeats of jobs, and operators' announcements on the status page.
  `
  CREATE TABLE heartbeat (name TEXT PRIMARY KEY, since INTEGER NOT NULL, beat_at INTEGER, failed_at INTEGER, exit_code INTEGER) STRICT, WITHOUT ROWID;
  CREATE TABLE announcement (id TEXT PRIMARY KEY, text TEXT NOT NULL, from_at INTEGER NOT NULL, until_at INTEGER, who TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX announcement_from ON announcement (from_at);
  `,
  // Earlier texts of lessons, for enrolments that began before a course was edited.
  `
  CREATE TABLE course_text (hash TEXT PRIMARY KEY, format TEXT NOT NULL, language TEXT NOT NULL, source TEXT NOT NULL) STRICT;
  ALTER TABLE course_plan ADD COLUMN unused_since INTEGER;
  `,
  // Notices of incidents, for visitors who subscribed to them.
  `
  CREATE TABLE notice (seq INTEGER PRIMARY KEY, subject TEXT NOT NULL, kind TEXT NOT NULL, at INTEGER NOT NULL, facts TEXT NOT NULL, UNIQUE (subject, kind)) STRICT;
  CREATE INDEX subscription_notice ON subscription (next_attempt_at) WHERE course = 'status';
  `,
  // Builds before 0.3.0 know fewer kinds of rows. A row says what a build has to know to claim it, and a claim
  // names its build's format before a tilde; 0.2.0 and 0.1.0, which name none, differ in that 0.1.0 writes no
  // lease. A claim that is refused changes the row's fence, so that its process finds that it does not hold it.
  `
  ALTER TABLE subscription ADD COLUMN needs INTEGER NOT NULL DEFAULT 0;
  CREATE TRIGGER subscription_claim_refused BEFORE UPDATE OF claimed_by ON subscription
  WHEN NEW.claimed_at IS NOT NULL AND NEW.claimed_by IS NOT OLD.claimed_by
    AND CASE
      WHEN instr(NEW.claimed_by, '~') > 0 THEN CAST(NEW.claimed_by AS INTEGER) < OLD.needs
      WHEN NEW.lease_until IS NOT OLD.lease_until THEN OLD.needs > 1
      ELSE OLD.needs > 0 OR OLD.course <> 'quantum'
        OR (OLD.claimed_at > NEW.claimed_at - 86400000 AND OLD.lease_until IS NOT NULL)
    END
  BEGIN
    UPDATE subscription SET fence = OLD.fence + 2,
      claimed_by = iif(OLD.claimed_at IS NOT NULL AND NEW.lease_until IS OLD.lease_until, OLD.claimed_by, NEW.claimed_by),
      next_attempt_at = iif(OLD.claimed_at IS NOT NULL AND NEW.lease_until IS OLD.lease_until, NEW.claimed_at + 900000, OLD.next_attempt_at)
    WHERE id = OLD.id; SELECT RAISE(IGNORE); END;
  CREATE TRIGGER subscription_claim_without_lease AFTER UPDATE OF claimed_by ON subscription
  WHEN NEW.claimed_at IS NOT NULL AND NEW.claimed_by IS NOT OLD.claimed_by AND NEW.lease_until IS OLD.lease_until AND NEW.lease_until IS NOT NULL
    AND NEW.fence = OLD.fence + 1
  BEGIN UPDATE subscription SET lease_until = NULL WHERE id = NEW.id; END;
  `,
  // The names of lessons sent, for enrolments that follow the newest course, and how many lessons one had that
  // a shorter course ended. Builds before 0.3.0 write neither.
  `
  ALTER TABLE subscription ADD COLUMN sent_lessons TEXT;
  ALTER TABLE subscription ADD COLUMN promised INTEGER;
  CREATE INDEX subscription_cut ON subscription (id) WHERE promised IS NOT NULL;
  CREATE TRIGGER subscription_cut_short AFTER UPDATE OF lessons ON subscription
  WHEN NEW.lessons < OLD.lessons AND NEW.next_attempt_at IS NULL AND NEW.problem_kind IS NULL
    AND NEW.state = 'confirmed' AND NEW.enrolment = OLD.enrolment AND NEW.course <> 'status'
  BEGIN UPDATE subscription SET promised = OLD.lessons WHERE id = NEW.id; END;
  CREATE TRIGGER subscription_begins_anew AFTER UPDATE OF enrolment ON subscription
  WHEN NEW.enrolment <> OLD.enrolment AND (NEW.sent_lessons IS NOT NULL OR NEW.promised IS NOT NULL OR NEW.needs > 0)
  BEGIN UPDATE subscription SET sent_lessons = NULL, promised = NULL, needs = 0 WHERE id = NEW.id; END;
  `,
  // Mails that have not left yet; first the confirmations that the build before would have tried again.
  `
  CREATE TABLE message (
    id TEXT PRIMARY KEY,
    stream TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE,
    subscription TEXT REFERENCES subscription (id) ON DELETE CASCADE,
    payload TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,
    outcome TEXT,
    unknown_since INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX message_due ON message (next_attempt_at);
  CREATE INDEX message_subscription ON message (subscription);
  INSERT INTO message (id, stream, key, subscription, payload, created_at, expires_at, next_attempt_at, attempts, outcome)
  SELECT s.id, 'confirmation', 'confirmation.' || s.id, s.id,
    json_object('course', s.course, 'language', (SELECT language FROM confirmation WHERE subscription = s.id ORDER BY created_at DESC LIMIT 1)),
    e.at, e.at + 86400000, e.at + 600000, 1, e.outcome
  FROM subscription s JOIN subscription_event e ON e.subscription = s.id AND e.kind = 'confirmation' AND e.outcome = 'transient'
  WHERE NOT EXISTS (SELECT 1 FROM subscription_event l WHERE l.subscription = s.id AND l.kind = 'confirmation' AND l.at > e.at)
    AND e.at > (SELECT max(at) FROM subscription_event) - 86400000
    AND EXISTS (SELECT 1 FROM confirmation c WHERE c.subscription = s.id AND c.used_at IS NULL AND c.replaced = 0)
    AND (s.state <> 'unsubscribed' OR s.unsubscribed_at < e.at)
    AND (s.state <> 'confirmed' OR (s.course <> 'status' AND s.next_attempt_at IS NULL));
  `,
]
