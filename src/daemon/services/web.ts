import type { RouteTable } from '../http/route.ts'
import type { Parts } from '../parts.ts'
import {
  confirmRoute,
  dispatchRoute,
  lessonRoute,
  subscribeRoute,
  unsubscribeRoute,
} from '../routes/course.ts'
import { emailRoute } from '../routes/email.ts'
import { healthRoute, statusRoute } from '../routes/health.ts'

export function webTable({
  settings,
  course,
  identify,
  transactionalMail,
  health,
  meaningOf,
}: Parts): RouteTable {
  return {
    status: statusRoute(health.web, meaningOf),
    lesson: lessonRoute,
    subscribe: subscribeRoute(course),
    confirm: confirmRoute(course),
    unsubscribe: unsubscribeRoute(course),
    email: emailRoute({ identify, mail: transactionalMail }),
    dispatch: dispatchRoute(course, settings.dispatch),
    webHealth: healthRoute(health.web, { deepToken: settings.health.deepToken }),
  }
}
