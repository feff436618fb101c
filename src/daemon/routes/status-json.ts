import type { ResolvedPlatform } from '../../core/platform.ts'
import { defineRoute, json } from '../http/route.ts'
import { EXAMPLE_STATUS, statusAnswer, statusJson } from '../pages/status/answer.ts'
import { answerStatus, RECORDED } from './status.ts'

export const route = ({ services }: ResolvedPlatform) =>
  defineRoute({
    ...RECORDED,
    summary: 'The status page for programs',
    answers: [
      json('The recorded status of the platform.', 'Status', statusAnswer(services.map(({ name }) => name)), {
        withoutDaemon: EXAMPLE_STATUS,
      }),
    ],
    handle: (site) => answerStatus(site, statusJson),
  })
