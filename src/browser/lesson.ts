import type { EventDefinition, EventKind } from '../core/analytics/events.ts'
import { createSanitiser } from '../core/analytics/sanitise.ts'
import { deviceStorage, isAllowed, openBuffer } from './device.ts'
import { pageData } from './page-data.ts'

const sanitise = createSanitiser(pageData<readonly EventDefinition[]>())

/** Records on this device that a lesson was opened, and that its end was reached: /insights shows it. */
function record(kind: EventKind, lesson: string): void {
  const storage = deviceStorage()
  if (storage === undefined || !isAllowed()) return
  const event = sanitise({ kind, at: Date.now(), properties: { lesson } }, () => {})
  if (event) openBuffer(storage).add(event)
}

const article = document.querySelector<HTMLElement>('[data-lesson]')
const lesson = article?.dataset.lesson
if (article && lesson !== undefined) {
  record('lesson.viewed', lesson)
  const end = new IntersectionObserver(([seen]) => {
    if (!seen?.isIntersecting) return
    end.disconnect()
    record('lesson.completed', lesson)
  })
  if (article.lastElementChild) end.observe(article.lastElementChild)
}
