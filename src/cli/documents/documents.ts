import type * as z from 'zod'
import * as course from './course.ts'
import * as environment from './environment.ts'
import * as mail from './mail.ts'
import * as operations from './operations.ts'
import * as store from './store.ts'

/**
 * The form of each document that a command prints with `--format json`, by command. The compiler holds the commands to
 * it through `printJson`, and docs/reference/schemas is made from it. The reports of
 * preflight and env check, and health, have schemas of their own, which name the platform's services and groups.
 */
export const DOCUMENTS = {
  'alert list': operations.alertList,
  'analytics summary': operations.analyticsSummary,
  'billing smoke': operations.billingSmoke,
  'course cancel': course.courseCancel,
  'course enrol': course.courseEnrol,
  'course erase': course.courseErase,
  'course list': course.courseList,
  'course resend-confirmation': course.courseResendConfirmation,
  'course resolve': course.courseResolve,
  'course resume': course.courseResume,
  'course show': course.courseShow,
  'course status': course.courseStatus,
  'db after-restore': store.dbAfterRestore,
  'db audit': store.dbAudit,
  'db backup': store.dbBackup,
  'db copy': store.dbCopy,
  'db migrate': store.dbMigrate,
  'db journal': store.dbJournal,
  'db restore': store.dbRestore,
  'db status': store.dbStatus,
  'db verify': store.dbVerify,
  dispatch: course.dispatch,
  'email feedback': mail.feedback,
  'email feedback status': mail.feedbackStatus,
  'email lint': mail.emailLint,
  'email list': mail.emailList,
  'email suppressions add': mail.suppressionsAdd,
  'email suppressions import': mail.suppressionsImport,
  'email suppressions list': mail.suppressionsList,
  'email suppressions remove': mail.suppressionsRemove,
  'env dialects': environment.envDialects,
  'env diff': environment.envDiff,
  'env list': environment.envList,
  status: operations.status,
} as const satisfies Readonly<Record<string, z.ZodType>>

export type DocumentedCommand = keyof typeof DOCUMENTS

/** The JSON document that a command prints. */
export type DocumentOf<Command extends DocumentedCommand> = Frozen<z.input<(typeof DOCUMENTS)[Command]>>

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Frozen<T[Key]> }
    : T
