import type { Advice } from './text.ts'

interface Condition extends Advice {
  /** What explains it: it is no incident while one of them fails. */
  readonly dependsOn?: readonly string[]
}

const start = (command: string, runbook: string) => ({ command: `platformctl ${command}`, runbook })

const ALL = {
  certificate_expiring: {
    label: 'A certificate',
    words: { is: 'must be renewed', still: 'must still be renewed', ended: 'is renewed' },
    means: 'from its end on, browsers and programs refuse the connection',
    ...start('preflight --deep', 'certificate-expiring'),
  },
  lessons_late: {
    dependsOn: ['store', 'mail', 'mail_refused'],
    label: 'Lessons',
    words: { is: 'are late', still: 'are still late', ended: 'go out again' },
    means: 'people get their lessons later than promised; none is lost',
    ...start('course status', 'dispatch-stalled'),
  },
  lessons_undecided: {
    dependsOn: ['store'],
    label: 'Lessons',
    words: { is: 'wait for your decision', still: 'still wait for your decision', ended: 'are all decided' },
    means: 'their readers get no more of that course until platformctl course resolve says retry or sent',
    ...start('course status', 'unknown-deliveries'),
  },
  disk_nearly_full: {
    label: 'The disk of the data folder',
    words: { is: 'is nearly full', still: 'is still nearly full', ended: 'has room again' },
    means: 'when it is full, an SQLite store takes nothing: subscribing fails and lessons wait',
    ...start('db status', 'store-full'),
  },
  disk_slow: {
    dependsOn: ['store'],
    label: 'The disk of the data folder',
    words: { is: 'is slow', still: 'is still slow', ended: 'is fast again' },
    means: 'requests wait for it, and lessons leave late',
    ...start('db status', 'store-full'),
  },
  build_skew: {
    label: 'The services',
    words: { is: 'run different builds', still: 'still run different builds', ended: 'run one build again' },
    means: 'a deploy stopped halfway: some requests meet the old build',
    ...start('health', 'build-skew'),
  },
  half_configured: {
    label: 'The environment',
    words: { is: 'is half-configured', still: 'is still half-configured', ended: 'stopped no start since' },
    means: 'no daemon starts with this environment: the deploy has no effect, or the platform is down',
    ...start('preflight', 'half-configured'),
  },
  mail_refused: {
    dependsOn: ['store', 'mail'],
    label: 'Mail',
    words: { is: 'is refused', still: 'is still refused', ended: 'is taken again' },
    means: 'no messages are sent; lessons wait and go out later',
    ...start('preflight --deep', 'mail-refused'),
  },
  courses_paused: {
    label: 'Courses',
    words: { is: 'are paused', still: 'are still paused', ended: 'are resumed' },
    means: 'no lessons are sent until somebody resumes them; other mail goes on, unless it is paused too',
    ...start('course status', 'complaints'),
  },
  mail_paused: {
    label: 'Mail',
    words: { is: 'is paused', still: 'is still paused', ended: 'is resumed' },
    means: 'the named kinds of mail wait until somebody resumes them; mail that waits too long is dropped',
    ...start('mail queue', 'stop-all-mail'),
  },
  feedback_refused: {
    label: 'Feedback of the mail provider',
    words: { is: 'is refused', still: 'is still refused', ended: 'is taken again' },
    means: 'bounces and complaints go unnoticed; mostly MAILER_FEEDBACK_SECRET is not the provider’s',
    ...start('preflight', 'rotation'),
  },
  mail_failing: {
    dependsOn: ['store', 'mail', 'mail_refused'],
    label: 'Mail',
    words: { is: 'often fails', still: 'still often fails', ended: 'has rarely failed for ten minutes' },
    means: 'some messages are not sent; those that can be retried are retried',
    ...start('mail queue', 'alerts'),
  },
  requests_failing: {
    dependsOn: ['store', 'store_busy', 'job_store', 'datastore', 'payments', 'mail'],
    label: 'Requests',
    words: { is: 'fail', still: 'still fail', ended: 'have rarely failed for ten minutes' },
    means: 'visitors see errors of the platform itself, although no probe fails',
    ...start('health --deep', 'alerts'),
  },
  calls_refused: {
    dependsOn: ['store', 'store_busy', 'requests_failing'],
    label: 'Unsubscriptions or payments',
    words: { is: 'are refused', still: 'are still refused', ended: 'were rarely refused for ten minutes' },
    means: 'mail programs and providers give up soon: an unsubscription or a payment may not be recorded',
    ...start('health --deep', 'alerts'),
  },
  store_busy: {
    dependsOn: ['store'],
    label: 'The store',
    words: { is: 'has no free connection', still: 'still has none', ended: 'has free ones again' },
    means: 'requests wait for a connection and are answered 503: set STORE_POOL_SIZE higher',
    ...start('db status', 'alerts'),
  },
  alerts_unheard: {
    dependsOn: ['store', 'mail', 'mail_refused'],
    label: 'Alerts',
    words: { is: 'do not arrive', still: 'still do not arrive', ended: 'arrive again' },
    means: 'nobody hears of incidents there',
    ...start('alert test', 'alerts'),
  },
  schedule_stalled: {
    dependsOn: ['store'],
    label: 'The schedule',
    words: { is: 'has stopped', still: 'is still stopped', ended: 'runs again' },
    means: 'lessons are late, or old records stay: see schedule_failed in the log, or restart the daemon',
    ...start('status', 'dispatch-stalled'),
  },
  clock_wrong: {
    label: 'The clock of the machine',
    words: { is: 'is wrong', still: 'is still wrong', ended: 'is right again' },
    means: 'lessons leave at the wrong time, and signatures, tokens and certificates are refused',
    ...start('status', 'alerts'),
  },
  restart_loop: {
    label: 'The daemon',
    words: { is: 'restarts again and again', still: 'still restarts', ended: 'has run for a while' },
    means: 'it ends soon after each start, and repeats messages; see its log or exit code (137: killed)',
    ...start('status', 'alerts'),
  },
  start_refused: {
    label: 'The daemon',
    words: { is: 'does not start', still: 'still does not start', ended: 'has not been refused since' },
    means: 'the deploy has no effect, or the platform is down',
    ...start('status', 'rollback'),
  },
} satisfies Record<string, Condition>

export type ConditionName = keyof typeof ALL

/** The conditions, which are causes of incidents beside the probes, with the advice about each. */
export const CONDITIONS: Readonly<Record<ConditionName, Condition>> = ALL

/** Advice for what the engine itself knows; all other probes take the general advice below. */
const OWN: Readonly<Record<string, Partial<Advice>>> = {
  ...CONDITIONS,
  store_refused: {
    ...CONDITIONS.start_refused,
    means: 'the platform is down until its store can be opened and the daemon is started again',
    isDown: true,
    ...start('db status', 'store-failing'),
  },
  store: {
    means: 'nothing can be stored: subscribing fails, and lessons wait',
    ...start('db status', 'store-failing'),
  },
  job_store: { means: 'jobs can be neither read nor stored', ...start('db status', 'store-failing') },
  mail: { means: ALL.mail_refused.means, ...start('preflight --deep', 'mail-refused') },
  payments: { means: 'nobody can pay', ...start('billing smoke', 'billing') },
  sharedstore: {
    means: 'rate limits count in each process for itself',
    ...start('health --deep', 'limiter-degraded'),
  },
}

export function adviceFor(
  cause: string,
  about: Readonly<
    Record<'isService' | 'isHeartbeat', boolean> &
      Record<'label', string> &
      Record<'meaning' | 'absent', string | undefined>
  >,
): Advice {
  const { label, isService, isHeartbeat, meaning, absent } = about
  const stored = cause === 'datastore' ? ', and what it stores cannot be reached' : ''
  const without = absent && `the platform works as without it (${absent})${stored}`
  const means = isService
    ? `nothing that asks ${label} works`
    : isHeartbeat
      ? 'a job did not run, or failed: what it does is not done'
      : (meaning?.replace(/\.$/, '') ?? without ?? `nothing that needs ${label} works`)
  const runbook = isHeartbeat ? 'heartbeat-late' : 'probe-failing'
  return { label, means, command: 'platformctl health --deep', runbook, ...OWN[cause] }
}
