/** What the stores need each in its own words; an empty text says that one does not need it. */
interface Both {
  readonly sqlite: string
  readonly postgres: string
}

/**
 * Steps of the schema, in order: never edited once released, only added to, and additive so that the build before still
 * runs. What both stores have is written once, with the types of PostgreSQL and the options of SQLite.
 */
const STEPS: readonly (string | Both | readonly (string | Both)[])[] = [
  [
    `
  CREATE TABLE subscription (
    id text PRIMARY KEY,
    identity text NOT NULL UNIQUE,
    address text NOT NULL,
    state text NOT NULL CHECK (state IN ('unconfirmed', 'confirmed', 'unsubscribed')),
    enrolment integer NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    confirmed_at bigint,
    unsubscribed_at bigint,
    sent_days jsonb NOT NULL DEFAULT '[]',
    next_attempt_at bigint,
    first_attempt_at bigint,
    claimed_by text,
    claimed_at bigint,
    fence integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    problem_kind text,
    problem_reason text,
    problem_since bigint
  ) STRICT;
  `,
    {
      sqlite: `CREATE INDEX subscription_due ON subscription ((failures > 0), next_attempt_at) WHERE next_attempt_at IS NOT NULL;`,
      postgres: `
  CREATE INDEX subscription_due ON platformctl.subscription (next_attempt_at) WHERE next_attempt_at IS NOT NULL AND failures = 0;
  CREATE INDEX subscription_retry ON platformctl.subscription (next_attempt_at) WHERE next_attempt_at IS NOT NULL AND failures > 0;
  `,
    },
    `
  CREATE INDEX subscription_problem ON subscription (problem_since) WHERE problem_kind IS NOT NULL;
  CREATE TABLE confirmation (
    token_hash text PRIMARY KEY,
    subscription text NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    created_at bigint NOT NULL,
    used_at bigint,
    replaced boolean NOT NULL DEFAULT false
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX confirmation_subscription ON confirmation (subscription, created_at);
  CREATE TABLE suppression (hash text PRIMARY KEY, created_at bigint NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE handled_hour (hour text PRIMARY KEY) STRICT, WITHOUT ROWID;
  CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL) STRICT, WITHOUT ROWID;
  `,
  ],
  // Accounts (docs/directory.md says what a host keeps in them), mails sent for them, events of the payments provider.
  `
  CREATE TABLE organisation (id text PRIMARY KEY, name text NOT NULL, locked_at bigint) STRICT, WITHOUT ROWID;
  CREATE TABLE organisation_admin (
    organisation text NOT NULL REFERENCES organisation (id) ON DELETE CASCADE,
    subject text NOT NULL,
    PRIMARY KEY (organisation, subject)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE organisation_invite (
    id text PRIMARY KEY,
    organisation text NOT NULL REFERENCES organisation (id) ON DELETE CASCADE,
    address text NOT NULL,
    url text NOT NULL,
    closed_at bigint
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE login_request (
    id text PRIMARY KEY,
    address text NOT NULL,
    url text NOT NULL,
    expires_at bigint NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE exam_attempt (
    id text PRIMARY KEY,
    subject text NOT NULL,
    exam text NOT NULL,
    score_percent integer NOT NULL CHECK (score_percent BETWEEN 0 AND 100),
    url text NOT NULL,
    passed_at bigint
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE sent_mail (key text PRIMARY KEY, first_attempt_at bigint NOT NULL, sent_id text) STRICT, WITHOUT ROWID;
  CREATE TABLE payment_event (
    id text PRIMARY KEY,
    type text NOT NULL,
    received_at bigint NOT NULL,
    claimed_until bigint NOT NULL,
    handled_at bigint
  ) STRICT, WITHOUT ROWID;
  `,
  // Caps for each recipient.
  `
  ALTER TABLE sent_mail ADD COLUMN recipient text;
  CREATE INDEX sent_mail_recipient ON sent_mail (recipient, first_attempt_at) WHERE recipient IS NOT NULL;
  `,
  // Claimed lessons, longest in hand first: finds expired leases without reading the other lessons.
  `CREATE INDEX subscription_claimed ON subscription (first_attempt_at, next_attempt_at) WHERE claimed_at IS NOT NULL;`,
  // An hour that is being handled; null: done.
  `ALTER TABLE handled_hour ADD COLUMN claimed_until bigint;`,
  // A key that all spellings of a mailbox share, for the caps; indexes for the platform's daily count and for
  // addresses never confirmed.
  `
  ALTER TABLE subscription ADD COLUMN mailbox_key text;
  CREATE INDEX subscription_mailbox ON subscription (mailbox_key) WHERE mailbox_key IS NOT NULL;
  CREATE INDEX confirmation_created ON confirmation (created_at);
  CREATE INDEX subscription_unconfirmed ON subscription (created_at) WHERE state = 'unconfirmed';
  `,
  // The history of each subscription, for its subscriber and for operators who are asked about it.
  `
  CREATE TABLE subscription_event (
    subscription text NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    at bigint NOT NULL,
    kind text NOT NULL,
    enrolment integer NOT NULL,
    day integer NOT NULL,
    attempt integer,
    outcome text,
    reason text,
    message_id text,
    provider_id text,
    PRIMARY KEY (subscription, at, kind, day)
  ) STRICT, WITHOUT ROWID;
  `,
  // Confirmation mails to try again.
  `CREATE INDEX subscription_event_failed ON subscription_event (at) WHERE kind = 'confirmation' AND outcome = 'transient';`,
  // The end of a lease by a clock that is never set.
  `ALTER TABLE subscription ADD COLUMN lease_until bigint;`,
  // Recipients were hashed without a key: their caps start anew.
  `UPDATE sent_mail SET recipient = NULL WHERE recipient IS NOT NULL;`,
  // The audit log of operators' actions; entries are never changed.
  [
    `
  CREATE TABLE audit (
    at bigint NOT NULL,
    id text NOT NULL,
    action text NOT NULL,
    who text NOT NULL,
    place text NOT NULL,
    subject text,
    details text,
    PRIMARY KEY (at, id)
  ) STRICT, WITHOUT ROWID;
  `,
    {
      sqlite: `
  CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
  CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
  `,
      postgres: `
  CREATE FUNCTION platformctl.refuse_change() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN RAISE EXCEPTION ''the audit log is append-only''; END';
  CREATE TRIGGER audit_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON platformctl.audit
    FOR EACH STATEMENT EXECUTE FUNCTION platformctl.refuse_change();
  `,
    },
  ],
  // Feedback from providers and mail servers: each event once, and the state of each mailbox, suppressed or
  // not.
  `
  CREATE TABLE feedback_event (key text PRIMARY KEY, received_at bigint NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX feedback_event_received ON feedback_event (received_at);
  CREATE TABLE mailbox (
    identity text PRIMARY KEY,
    soft_bounces integer NOT NULL DEFAULT 0,
    soft_since bigint,
    soft_until bigint,
    delivered_at bigint,
    cause text,
    suppressed_at bigint,
    source text,
    reason text
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX mailbox_suppressed ON mailbox (suppressed_at, identity) WHERE cause IS NOT NULL;
  INSERT INTO mailbox (identity, cause, suppressed_at, source, reason)
    SELECT identity, 'hard-bounce', problem_since, 'send', problem_reason FROM subscription WHERE problem_kind = 'bounced';
  ALTER TABLE subscription_event ADD COLUMN source text;
  `,
  // Counts of mail sent and reported, by minute for the breaker and by day for operators; the breaker's
  // state; the pace.
  `
  CREATE TABLE mail_minute (minute bigint NOT NULL, kind text NOT NULL, count bigint NOT NULL, PRIMARY KEY (minute, kind)) STRICT, WITHOUT ROWID;
  CREATE TABLE mail_day (
    day text NOT NULL,
    source text NOT NULL,
    domain text NOT NULL,
    kind text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (day, source, domain, kind)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE breaker (name text PRIMARY KEY, paused_at bigint, reason text, resumed_at bigint) STRICT, WITHOUT ROWID;
  CREATE TABLE pace (name text PRIMARY KEY, next_us bigint NOT NULL) STRICT, WITHOUT ROWID;
  `,
  // Several courses: one row per enrolment. Existing rows belong to the only course there was: seven lessons,
  // one a day.
  `
  ALTER TABLE subscription ADD COLUMN course text NOT NULL DEFAULT 'quantum';
  ALTER TABLE subscription ADD COLUMN person text;
  ALTER TABLE subscription ADD COLUMN course_version text;
  ALTER TABLE subscription ADD COLUMN lessons integer NOT NULL DEFAULT 7;
  ALTER TABLE subscription ADD COLUMN due_at bigint;
  ALTER TABLE subscription ADD COLUMN last_sent_at bigint;
  ALTER TABLE subscription ADD COLUMN time_zone text;
  ALTER TABLE subscription ADD COLUMN language text;
  CREATE INDEX subscription_person ON subscription (person) WHERE person IS NOT NULL;
  ALTER TABLE confirmation ADD COLUMN time_zone text;
  ALTER TABLE confirmation ADD COLUMN language text;
  CREATE TABLE course_plan (course text NOT NULL, version text NOT NULL, plan text NOT NULL, PRIMARY KEY (course, version)) STRICT, WITHOUT ROWID;
  CREATE TABLE enrol_request (
    key text PRIMARY KEY,
    subscription text NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    enrolment integer NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX enrol_request_subscription ON enrol_request (subscription);
  `,
  // Incidents, the alerts sent about them, and silences.
  `
  CREATE TABLE incident (
    id text PRIMARY KEY,
    cause text NOT NULL,
    service text NOT NULL,
    reason text,
    affected text NOT NULL,
    opened_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    closed_at bigint,
    acknowledged_at bigint,
    acknowledged_by text
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX incident_open ON incident (cause) WHERE closed_at IS NULL;
  CREATE INDEX incident_opened ON incident (opened_at);
  CREATE TABLE alert_message (
    incident text NOT NULL,
    kind text NOT NULL,
    channel text NOT NULL,
    outcome text NOT NULL,
    attempts integer NOT NULL,
    at bigint NOT NULL,
    next_at bigint NOT NULL,
    claimed_until bigint NOT NULL,
    reason text,
    PRIMARY KEY (incident, kind, channel)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX alert_message_at ON alert_message (at);
  CREATE TABLE silence (from_at bigint PRIMARY KEY, until_at bigint NOT NULL, reason text NOT NULL, who text NOT NULL) STRICT;
  `,
  // Heartbeats of jobs, and operators' announcements on the status page.
  `
  CREATE TABLE heartbeat (name text PRIMARY KEY, since bigint NOT NULL, beat_at bigint, failed_at bigint, exit_code integer) STRICT, WITHOUT ROWID;
  CREATE TABLE announcement (id text PRIMARY KEY, text text NOT NULL, from_at bigint NOT NULL, until_at bigint, who text NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX announcement_from ON announcement (from_at);
  `,
  // Earlier texts of lessons, for enrolments that began before a course was edited.
  `
  CREATE TABLE course_text (hash text PRIMARY KEY, format text NOT NULL, language text NOT NULL, source text NOT NULL) STRICT;
  ALTER TABLE course_plan ADD COLUMN unused_since bigint;
  `,
  // Notices of incidents, for visitors who subscribed to them.
  `
  CREATE TABLE notice (seq bigint PRIMARY KEY, subject text NOT NULL, kind text NOT NULL, at bigint NOT NULL, facts text NOT NULL, UNIQUE (subject, kind)) STRICT;
  CREATE INDEX subscription_notice ON subscription (next_attempt_at) WHERE course = 'status';
  `,
  // The health that all machines recorded: each probe’s last state, hours and days; what each service’s build is. An SQLite
  // store belongs to one machine, which has it in a file of its own.
  {
    sqlite: ``,
    postgres: `
  CREATE TABLE platformctl.health_series (
    place bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY,
    service text NOT NULL,
    probe text NOT NULL,
    first_at bigint NOT NULL,
    at bigint NOT NULL,
    counted_to bigint NOT NULL,
    state text NOT NULL CHECK (state IN ('ok', 'degraded', 'failing', 'skipped')),
    reason text,
    recorder text NOT NULL,
    state_at bigint NOT NULL,
    PRIMARY KEY (service, probe)
  );
  CREATE TABLE platformctl.health_period (
    length bigint NOT NULL,
    start bigint NOT NULL,
    service text NOT NULL,
    probe text NOT NULL,
    ok bigint NOT NULL CHECK (ok >= 0),
    degraded bigint NOT NULL CHECK (degraded >= 0),
    failing bigint NOT NULL CHECK (failing >= 0),
    skipped bigint NOT NULL CHECK (skipped >= 0),
    seen integer NOT NULL CHECK (seen BETWEEN 0 AND 15),
    latency bytea NOT NULL,
    PRIMARY KEY (length, start, service, probe)
  );
  CREATE TABLE platformctl.health_build (service text PRIMARY KEY, build text, since bigint NOT NULL, seen_at bigint NOT NULL);
  `,
  },
  // Builds before 0.3.0 know fewer kinds of rows. A row says what a build has to know to claim it, and a claim
  // names its build's format before a tilde; 0.2.0 and 0.1.0, which name none, differ in that 0.1.0 writes no
  // lease. A claim that is refused changes the row's fence, so that its process finds that it does not hold it.
  [
    `ALTER TABLE subscription ADD COLUMN needs integer NOT NULL DEFAULT 0;`,
    {
      sqlite: `
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
      postgres: `
  CREATE FUNCTION platformctl.refuse_claim() RETURNS trigger LANGUAGE plpgsql AS '
  DECLARE refused platformctl.subscription := OLD; BEGIN refused.fence := OLD.fence + 2; IF
    OLD.claimed_at IS NOT NULL AND NEW.lease_until IS NOT DISTINCT FROM OLD.lease_until
    THEN refused.next_attempt_at := NEW.claimed_at + 900000; ELSE refused.claimed_by := NEW.claimed_by; END IF; RETURN refused; END';
  CREATE TRIGGER subscription_claim_refused BEFORE UPDATE OF claimed_by ON platformctl.subscription FOR EACH ROW
  WHEN (NEW.claimed_at IS NOT NULL AND NEW.claimed_by IS DISTINCT FROM OLD.claimed_by
    AND CASE
      WHEN NEW.claimed_by LIKE '%~%' THEN split_part(NEW.claimed_by, '~', 1)::integer < OLD.needs
      WHEN NEW.lease_until IS DISTINCT FROM OLD.lease_until THEN OLD.needs > 1
      ELSE OLD.needs > 0 OR OLD.course <> 'quantum'
        OR (OLD.claimed_at > NEW.claimed_at - 86400000 AND OLD.lease_until IS NOT NULL)
    END)
  EXECUTE FUNCTION platformctl.refuse_claim();
  CREATE FUNCTION platformctl.drop_old_lease() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN NEW.lease_until := NULL; RETURN NEW; END';
  CREATE TRIGGER subscription_claim_without_lease BEFORE UPDATE OF claimed_by ON platformctl.subscription FOR EACH ROW
  WHEN (NEW.claimed_at IS NOT NULL AND NEW.claimed_by IS DISTINCT FROM OLD.claimed_by
    AND NEW.lease_until IS NOT DISTINCT FROM OLD.lease_until AND NEW.lease_until IS NOT NULL
    AND NEW.fence = OLD.fence + 1)
  EXECUTE FUNCTION platformctl.drop_old_lease();
  `,
    },
  ],
  // The names of lessons sent, for enrolments that follow the newest course, and how many lessons one had that
  // a shorter course ended. Builds before 0.3.0 write neither.
  [
    `
  ALTER TABLE subscription ADD COLUMN sent_lessons jsonb;
  ALTER TABLE subscription ADD COLUMN promised integer;
  CREATE INDEX subscription_cut ON subscription (id) WHERE promised IS NOT NULL;
  `,
    {
      sqlite: `
  CREATE TRIGGER subscription_cut_short AFTER UPDATE OF lessons ON subscription
  WHEN NEW.lessons < OLD.lessons AND NEW.next_attempt_at IS NULL AND NEW.problem_kind IS NULL
    AND NEW.state = 'confirmed' AND NEW.enrolment = OLD.enrolment AND NEW.course <> 'status'
  BEGIN UPDATE subscription SET promised = OLD.lessons WHERE id = NEW.id; END;
  CREATE TRIGGER subscription_begins_anew AFTER UPDATE OF enrolment ON subscription
  WHEN NEW.enrolment <> OLD.enrolment AND (NEW.sent_lessons IS NOT NULL OR NEW.promised IS NOT NULL OR NEW.needs > 0)
  BEGIN UPDATE subscription SET sent_lessons = NULL, promised = NULL, needs = 0 WHERE id = NEW.id; END;
  `,
      postgres: `
  CREATE FUNCTION platformctl.cut_short() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN NEW.promised := OLD.lessons; RETURN NEW; END';
  CREATE TRIGGER subscription_cut_short BEFORE UPDATE OF lessons ON platformctl.subscription FOR EACH ROW
  WHEN (NEW.lessons < OLD.lessons AND NEW.next_attempt_at IS NULL AND NEW.problem_kind IS NULL
    AND NEW.state = 'confirmed' AND NEW.enrolment = OLD.enrolment AND NEW.course <> 'status')
  EXECUTE FUNCTION platformctl.cut_short();
  CREATE FUNCTION platformctl.begin_anew() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN NEW.sent_lessons := NULL; NEW.promised := NULL; NEW.needs := 0; RETURN NEW; END';
  CREATE TRIGGER subscription_begins_anew BEFORE UPDATE OF enrolment ON platformctl.subscription FOR EACH ROW
  WHEN (NEW.enrolment <> OLD.enrolment AND (NEW.sent_lessons IS NOT NULL OR NEW.promised IS NOT NULL OR NEW.needs > 0))
  EXECUTE FUNCTION platformctl.begin_anew();
  `,
    },
  ],
  // Mails that have not left yet; first the confirmations that the build before would have tried again.
  [
    `
  CREATE TABLE message (
    id text PRIMARY KEY,
    stream text NOT NULL,
    key text NOT NULL UNIQUE,
    subscription text REFERENCES subscription (id) ON DELETE CASCADE,
    payload text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    next_attempt_at bigint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    fence integer NOT NULL DEFAULT 0,
    lease_until bigint,
    outcome text,
    unknown_since bigint
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX message_due ON message (next_attempt_at);
  CREATE INDEX message_subscription ON message (subscription);
  `,
    {
      sqlite: `
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
      postgres: `
  INSERT INTO platformctl.message (id, stream, key, subscription, payload, created_at, expires_at, next_attempt_at, attempts, outcome)
  SELECT s.id, 'confirmation', 'confirmation.' || s.id, s.id,
    json_build_object('course', s.course, 'language', (SELECT language FROM platformctl.confirmation WHERE subscription = s.id ORDER BY created_at DESC LIMIT 1))::text,
    e.at, e.at + 86400000, e.at + 600000, 1, e.outcome
  FROM platformctl.subscription s JOIN platformctl.subscription_event e ON e.subscription = s.id AND e.kind = 'confirmation' AND e.outcome = 'transient'
  WHERE NOT EXISTS (SELECT 1 FROM platformctl.subscription_event l WHERE l.subscription = s.id AND l.kind = 'confirmation' AND l.at > e.at)
    AND e.at > (SELECT max(at) FROM platformctl.subscription_event) - 86400000
    AND EXISTS (SELECT 1 FROM platformctl.confirmation c WHERE c.subscription = s.id AND c.used_at IS NULL AND NOT c.replaced)
    AND (s.state <> 'unsubscribed' OR s.unsubscribed_at < e.at)
    AND (s.state <> 'confirmed' OR (s.course <> 'status' AND s.next_attempt_at IS NULL));
  `,
    },
  ],
  // When and how somebody agreed. Builds before 0.3.0 write neither.
  `
  ALTER TABLE subscription ADD COLUMN consent_at bigint;
  ALTER TABLE subscription ADD COLUMN consent_how text;
  `,
  // Operators close an incident by hand, and tell visitors how it goes on.
  `
  ALTER TABLE incident ADD COLUMN resolved_by text;
  ALTER TABLE incident ADD COLUMN resolved_reason text;
  CREATE TABLE status_update (id text PRIMARY KEY, subject text NOT NULL, at bigint NOT NULL, text text NOT NULL, state text, who text NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX status_update_at ON status_update (at);
  `,
  // Mails that somebody wants sent for certain are messages too; those given up stay for their operator, without content.
  `
  ALTER TABLE message ADD COLUMN address text;
  ALTER TABLE message ADD COLUMN reason text;
  ALTER TABLE message ADD COLUMN done_at bigint;
  CREATE INDEX message_stream ON message (stream, next_attempt_at) WHERE done_at IS NULL;
  ALTER TABLE sent_mail ADD COLUMN content text;
  `,
  // Alerts are messages too, one for each incident (the subject) and channel.
  `
  ALTER TABLE message ADD COLUMN subject text;
  ALTER TABLE message ADD COLUMN channel text;
  CREATE INDEX message_subject ON message (subject) WHERE subject IS NOT NULL;
  `,
  'ALTER TABLE announcement ADD COLUMN translations text;',
]

/** The tables of a store, each after those that it refers to. */
export const TABLES: readonly string[] = STEPS.flat().flatMap((part) =>
  typeof part === 'string' ? [...part.matchAll(/CREATE TABLE (\w+)/g)].map(([, name = '']) => name) : [],
)

/** A type follows the name of its column. */
const TYPE = /(?<=\w )(?:bigint|integer|boolean|jsonb|text)\b/g
const TABLE_NAME = new RegExp(
  `\\b(FROM|INTO|JOIN|UPDATE|TABLE|ON|REFERENCES) (?=(?:${TABLES.join('|')})\\b)`,
  'g',
)

const inSqlite = (text: string) =>
  text
    .replace(TYPE, (type) => (type === 'text' || type === 'jsonb' ? 'TEXT' : 'INTEGER'))
    .replaceAll('DEFAULT false', 'DEFAULT 0')

const inPostgres = (text: string) =>
  text.replaceAll(/ STRICT(?:, WITHOUT ROWID)?;/g, ';').replace(TABLE_NAME, '$1 platformctl.')

const textsOf = (store: keyof Both, translate: (text: string) => string): readonly string[] =>
  STEPS.map((step) =>
    [step]
      .flat()
      .map((part) => (typeof part === 'string' ? translate(part) : part[store]))
      .join('\n'),
  )

/** The steps on an SQLite file. */
export const SQLITE_STEPS = textsOf('sqlite', inSqlite)

/** The steps on a PostgreSQL server. */
export const POSTGRES_STEPS = textsOf('postgres', inPostgres)
