-- After an older dump was restored into the schema platformctl, and the schema that it replaced was kept as
-- platformctl_before: what people and operators ended since the dump stays ended. Run it in one transaction
-- (psql --single-transaction); running it twice changes nothing more. Both schemas are of one build.

-- Unsubscribed since.
UPDATE platformctl.subscription s
SET state = 'unsubscribed', unsubscribed_at = b.unsubscribed_at, next_attempt_at = NULL, first_attempt_at = NULL,
  claimed_at = NULL, lease_until = NULL, claimed_by = NULL, fence = greatest(s.fence, b.fence) + 1,
  failures = 0, problem_kind = b.problem_kind, problem_reason = b.problem_reason, problem_since = b.problem_since
FROM platformctl_before.subscription b
WHERE b.id = s.id AND b.enrolment = s.enrolment AND b.state = 'unsubscribed' AND s.state <> 'unsubscribed';

-- Erased since, with what was related.
INSERT INTO platformctl.suppression SELECT * FROM platformctl_before.suppression ON CONFLICT DO NOTHING;
DELETE FROM platformctl.subscription s
WHERE NOT EXISTS (SELECT 1 FROM platformctl_before.subscription b WHERE b.id = s.id);
DELETE FROM platformctl.organisation_invite i
WHERE NOT EXISTS (SELECT 1 FROM platformctl_before.organisation_invite b WHERE b.id = i.id);
DELETE FROM platformctl.login_request l
WHERE NOT EXISTS (SELECT 1 FROM platformctl_before.login_request b WHERE b.id = l.id);

-- Bounced, complained, suppressed or taken off the list since.
DELETE FROM platformctl.mailbox;
INSERT INTO platformctl.mailbox SELECT * FROM platformctl_before.mailbox;
INSERT INTO platformctl.feedback_event SELECT * FROM platformctl_before.feedback_event ON CONFLICT DO NOTHING;

-- What operators did since.
INSERT INTO platformctl.audit SELECT * FROM platformctl_before.audit ON CONFLICT DO NOTHING;
