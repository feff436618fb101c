/** What must be on the machine before a runbook's commands mean something: bash, by the runbook's name. */
export const SETUPS: Readonly<Record<string, string>> = {
  'dispatch-stalled': '$SEED /var/lib/platformctl/platform.sqlite ada=due',
  'backlog-growing': '$SEED /var/lib/platformctl/platform.sqlite ada=due grace=due',
  'unknown-deliveries': '$SEED /var/lib/platformctl/platform.sqlite ada=unknown grace=parked edsger=sent',
  'bounce-rate': '$SEED /var/lib/platformctl/platform.sqlite ada=bounced grace=sent edsger=sent',
  'store-full': '$SEED /var/lib/platformctl/platform.sqlite ada=due',
  store: '$SEED /var/lib/platformctl/platform.sqlite ada=due grace=sent',
  rollback: '$SEED /var/lib/platformctl/platform.sqlite ada=due',
}
