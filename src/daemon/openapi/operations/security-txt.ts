import type { RouteOperations } from '../operation.ts'

export const SECURITY_TXT = {
  securityTxt: {
    GET: {
      tag: 'Operations',
      summary: 'Where to report a weakness (RFC 9116)',
      description: 'As `security` of the platform definition says; 404 when it says nothing.',
      answers: [
        { status: 200, description: 'The contact and its terms.', content: { 'text/plain': 'text' } },
      ],
      errors: ['not_found'],
    },
  },
} satisfies Partial<RouteOperations>
