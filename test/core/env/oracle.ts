import { contract, VARIABLES } from '../../support/learning.ts'

/** The variables of each group, and with those of analytics the one of another group that a rule of it looks at. */
export const GROUP_VARIABLES: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  contract.groups.map(({ name: group }) => [
    group,
    [
      ...VARIABLES.filter((variable) => variable.group === group).map(({ name }) => name),
      ...(group === 'analytics' ? ['STORE_URL'] : []),
    ],
  ]),
)

/**
 * Every subset of at most eight names. Of more: those that lack at most two names or have no more, and every seventh of the
 * others.
 */
export function subsetsOf(names: readonly string[]): string[][] {
  const all = Array.from({ length: 2 ** names.length }, (_, subset) =>
    names.filter((_name, bit) => subset & (1 << bit)),
  )
  const isNearEnd = ({ length }: string[]) => length <= 2 || length >= names.length - 2
  return names.length <= 8 ? all : all.filter((set, index) => isNearEnd(set) || index % 7 === 0)
}

/**
 * CONTRACT §2's table of errors written again, by hand and by a different road than `rules.ts`: sentences in
 * code, not rows of data. It knows nothing of the rules.
 */
export function brokenRules(set: ReadonlySet<string>): string[] {
  const broken: string[] = []
  const on = (name: string) => set.has(name)

  const [dataUrl, anon] = [on('NEXT_PUBLIC_DATASTORE_URL'), on('NEXT_PUBLIC_DATASTORE_ANON_KEY')]
  if (dataUrl !== anon) broken.push('datastore-pair')
  if (
    !dataUrl &&
    (on('DATASTORE_SERVICE_ROLE_KEY') || on('DATASTORE_JWT_SECRET') || on('DATASTORE_JWKS_URL'))
  )
    broken.push('datastore-without-url')
  if (on('DATASTORE_JWT_SECRET') && on('DATASTORE_JWKS_URL')) broken.push('datastore-two-verifiers')

  const aPrice = [...set].some((name) => name.startsWith('PAYMENTS_PRICE_'))
  if (on('PAYMENTS_SECRET_KEY')) {
    if (!aPrice) broken.push('payments-without-price')
    if (!on('PAYMENTS_WEBHOOK_SECRET')) broken.push('payments-without-webhook')
  } else if (aPrice || on('PAYMENTS_WEBHOOK_SECRET') || on('NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY'))
    broken.push('payments-without-key')

  const trio = ['KEY', 'ENDPOINT', 'DEPLOYMENT'].filter((part) => on(`CLOUDMODEL_API_${part}`)).length
  if (trio === 1 || trio === 2) broken.push('cloudmodel-trio')
  if (on('CLOUDMODEL_API_VERSION') && !on('CLOUDMODEL_API_KEY')) broken.push('cloudmodel-version-without-key')
  for (const letter of 'ABC')
    if (on(`MODEL_${letter}_MODEL`) && !on(`MODEL_${letter}_API_KEY`))
      broken.push(`model-${letter.toLowerCase()}-without-key`)

  if (on('HARDWARE_A_TOKEN') !== on('HARDWARE_A_INSTANCE')) broken.push('hardware-a-pair')
  const [access, secret] = [on('CLOUDB_ACCESS_KEY_ID'), on('CLOUDB_SECRET_ACCESS_KEY')]
  if (access !== secret) broken.push('cloudb-pair')
  if ((on('CLOUDB_REGION') || on('CLOUDB_RESULTS_BUCKET')) && !(access && secret))
    broken.push('cloudb-without-credentials')
  if (access && secret && !on('CLOUDB_REGION')) broken.push('cloudb-without-region')
  const qpu = [...set].filter((name) => name.startsWith('CLOUDQPU_')).length
  if (qpu > 0 && qpu < 7) broken.push('cloudqpu-all')

  if (on('SHAREDSTORE_REST_URL') !== on('SHAREDSTORE_REST_TOKEN')) broken.push('sharedstore-pair')

  if (on('MAILER_API_KEY')) {
    if (!on('MAILER_FROM')) broken.push('mail-without-sender')
    if (!on('MAILER_API_URL') && !on('MAILER_SMTP_URL')) broken.push('mail-without-route')
  } else if (on('MAILER_SMTP_URL')) {
    // The oracle's mail server asks for no user.
    if (!on('MAILER_FROM')) broken.push('mail-without-sender')
  } else if (on('MAILER_FROM') || on('MAILER_REPLY_TO') || on('MAILER_API_URL') || on('MAILER_PROVIDER'))
    broken.push('mail-without-key')
  if (on('MAILER_API_URL') && on('MAILER_SMTP_URL')) broken.push('mail-two-routes')

  if (on('ERRORTRACK_AUTH_TOKEN') && !on('NEXT_PUBLIC_ERRORTRACK_DSN')) broken.push('errortrack-without-dsn')
  if (on('ANALYTICS_DATASTORE_TABLE') && !on('STORE_URL')) broken.push('analytics-without-store')
  if (!on('DATASTORE_JWT_SECRET') && !on('DATASTORE_JWKS_URL')) {
    if (on('DATASTORE_JWT_AUDIENCE')) broken.push('identity-audience-without-verifier')
    if (on('DATASTORE_JWT_ISSUER')) broken.push('identity-issuer-without-verifier')
  }
  const escalates = on('ALERT_ESCALATION_URL')
  if (on('ALERT_WEBHOOK_SECRET') && !on('ALERT_WEBHOOK_URL') && !escalates)
    broken.push('alerts-secret-without-webhook')
  if (escalates && !on('ALERT_WEBHOOK_URL') && !on('ALERT_EMAIL_TO')) broken.push('alerts-escalation-alone')
  if (on('ALERT_ESCALATION_AFTER') && !escalates) broken.push('alerts-escalation-after-alone')
  if (on('ALERT_WEBHOOK_FORMAT') && !on('ALERT_WEBHOOK_URL')) broken.push('alerts-format-without-webhook')
  if (on('MAILER_FEEDBACK_PROVIDER') !== on('MAILER_FEEDBACK_SECRET')) broken.push('feedback-pair')
  const signing = ['DOMAIN', 'SELECTOR', 'KEY'].filter((part) => on(`MAILER_DKIM_${part}`)).length
  if (signing === 1 || signing === 2) broken.push('dkim-all')
  return broken
}
