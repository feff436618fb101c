import { expect, test } from 'vitest'
import { isOfType } from '../../src/core/mail/template.ts'
import { en } from '../../src/core/messages/en.ts'
import { noticeSlots } from '../../src/daemon/open/course.ts'
import { learning } from '../../src/presets/learning/platform.ts'

const FROM = Date.UTC(2026, 10, 22, 9)
const HOUR = 60 * 60 * 1000

const slots = (kind: 'opened' | 'closed' | 'announced', facts: object) =>
  noticeSlots(learning, 'https://www.example.com', {
    subject: 'a',
    kind,
    at: FROM,
    facts: { from: FROM, ...facts },
  })

test('what fails is told with what visitors miss, and since when', () => {
  const { statusUrl, title, text, when } = slots('opened', { cause: 'payments', until: FROM + HOUR })
  expect(statusUrl).toBe('https://www.example.com/')
  expect(title).toMatch(/ is not working$/)
  expect(text).toContain(en.notices.means.payments)
  expect(when).toMatch(/^Since .*09:00/)
  expect(slots('opened', { cause: 'kiln' }).text).toContain(en.notices.meansOther)
})

test('what works again is told with how long it did not, if that is known', () => {
  const { title, when } = slots('closed', { cause: 'payments', until: FROM + HOUR })
  expect(title).toMatch(/ works again$/)
  expect(when).toMatch(/from .*09:00.* to .*10:00.*, for 1 hour/)
  expect(slots('closed', { cause: 'payments' }).when).toMatch(/^Since /)
})

test.each(['en', 'de'])('what is no longer checked is not told as working: %s', (language) => {
  const facts = { from: FROM, until: FROM + HOUR, cause: 'payments', isGone: true }
  const notice = { subject: 'a', kind: 'closed', at: FROM, facts } as const
  const { title, text, when } = noticeSlots({ ...learning, language }, 'https://www.example.com', notice)
  expect(title).toMatch(language === 'en' ? / is no longer checked$/ : / wird nicht mehr geprüft$/)
  expect(`${title} ${text}`).not.toMatch(/works again|funktioniert/)
  expect(when).toMatch(/^(Since|Seit) /)
})

test('an announcement has its text on one line, and its end if it has one', () => {
  const { title, text, when } = slots('announced', { text: ' We\n\tmove\u0007 house. ' })
  expect(title).toBe(`${learning.name}: We move house`)
  expect(text).toBe('We move house.')
  expect(when).toMatch(/^Since /)
  expect(slots('announced', { text: 'x', until: FROM + HOUR }).when).toMatch(/^22 Nov .*09:00.*10:00/)
  // It is mailed as soon as it is announced.
  expect(slots('announced', { text: 'x', from: FROM + HOUR }).when).toMatch(/^Planned from .*10:00/)
})

test('whatever an operator pastes, and a probe is called, is a text that a mail can hold', () => {
  const platform = { ...learning, name: 'Kiln\u202eSchool' }
  for (const mark of ['\u202a', '\u202e', '\u2066', '\u2028', '\u0085', '\u001b', '\ud800']) {
    const facts = { from: FROM, text: `Pasted ${mark}C:\\data` }
    const notice = { subject: 'a', at: FROM, facts } as const
    for (const kind of ['opened', 'closed', 'announced'] as const) {
      const { title, text } = noticeSlots(platform, 'https://www.example.com', { ...notice, kind })
      for (const slot of [title, text]) expect(isOfType('text', slot), slot).toBe(true)
    }
    expect(slots('announced', facts).text).toMatch(/^Pasted .*C:\\data$/)
  }
})

test('an update names what it is about, and where the operators are with it', () => {
  const update = { about: 'i', text: 'A disk\nis replaced' }
  expect(slots('announced', { ...update, cause: 'mail', state: 'identified' })).toMatchObject({
    title: `${learning.name}: update on Mail`,
    text: 'A disk is replaced',
    when: expect.stringMatching(/^Identified, /),
  })
  expect(slots('announced', update)).toMatchObject({
    title: `${learning.name}: update`,
    when: expect.stringMatching(/^Update, /),
  })
})

test('an announcement of 480 characters is whole, and a longer one is cut between characters', () => {
  const text = (length: number) => slots('announced', { text: 'x'.repeat(length) }).text
  expect(text(480)).toBe('x'.repeat(480))
  expect(text(481)).toBe(`${'x'.repeat(479)}…`)
  expect(slots('announced', { text: `${'x'.repeat(479)}🔥🔥` }).text).toBe(`${'x'.repeat(479)}…`)
})

test('a notice is in the language of its reader if its mail is, else as a whole in that of the platform', () => {
  const facts = { text: 'Slow', translations: { de: 'Langsam' }, from: FROM }
  const translated = { name: 'de/status-notice', translates: 'status-notice' }
  const { mails } = learning
  const german = { ...learning, mails: { ...mails, definitions: [...mails.definitions, translated] } }
  const said = (language?: string, platform: typeof learning = german) =>
    noticeSlots(
      platform,
      'https://www.example.com',
      { subject: 'a', kind: 'announced', at: FROM, facts },
      language,
    )
  expect(said('de-AT')).toMatchObject({
    title: expect.stringContaining('Langsam'),
    text: 'Langsam',
    when: expect.stringMatching(/^Seit /),
  })
  for (const english of [said('fr'), said(), said('de-AT', learning)])
    expect(english).toMatchObject({ text: 'Slow', when: expect.stringMatching(/^Since /) })
  // The page speaks more languages than the mails.
  expect(said('de-AT', learning).statusUrl).toBe('https://www.example.com/?language=de-AT')
})
