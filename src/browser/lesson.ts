import type { EventDefinition } from '../core/analytics/events.ts'
import { setEvents, track } from './browser.ts'
import { pageData } from './page-data.ts'

setEvents(pageData<readonly EventDefinition[]>())

// Records on this device that a lesson was opened, and that its end was reached: /insights shows it.
const article = document.querySelector<HTMLElement>('[data-lesson]')
const lesson = article?.dataset.lesson
if (article && lesson !== undefined) {
  track('lesson.viewed', { lesson })
  const end = new IntersectionObserver(([seen]) => {
    if (!seen?.isIntersecting) return
    end.disconnect()
    track('lesson.completed', { lesson })
  })
  if (article.lastElementChild) end.observe(article.lastElementChild)
}
