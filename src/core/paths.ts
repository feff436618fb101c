/** Paths of the web service that mails, forms and commands lead to; its routes are served at exactly these. */
export const PATHS = {
  lesson: '/lessons/:day',
  picture: '/preview.png',
  subscribe: '/api/email/subscribe',
  analytics: '/api/analytics',
  confirm: '/api/email/confirm',
  unsubscribe: '/api/email/unsubscribe',
  dispatch: '/api/email/dispatch',
  feedback: '/api/email/feedback/:provider',
  heartbeat: '/api/heartbeats/:name',
  silence: '/api/alerts/silence',
  paymentsWebhook: '/api/payments/webhook',
} as const
