import type { Notice, NoticeFacts } from '../course/notices.ts'
import { storableText } from './rows.ts'

/** The table `notice` as every SQL store has it. */
export interface NoticeRow {
  readonly seq: number
  readonly subject: string
  readonly kind: Notice['kind']
  readonly at: number
  /** JSON. */
  readonly facts: string
}

export function noticeOf({ facts, ...row }: NoticeRow): Notice {
  // Only `factsText` writes the column.
  return { ...row, facts: JSON.parse(facts) as NoticeFacts }
}

export function factsText(facts: NoticeFacts): string {
  return storableText(JSON.stringify(facts))
}
