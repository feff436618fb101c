import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { languageDetector } from 'hono/language'
import { openPlatform } from 'platformctl'
import { registerPlatform } from 'platformctl/config'
import definition from './platform.config.ts'

registerPlatform(definition)
const platform = openPlatform({ env: process.env, platform: definition })

const TEXTS = {
  en: { title: 'Federation of Choirs', email: 'E-mail address', subscribe: 'Get a lesson every Tuesday' },
  de: { title: 'Bund der Chöre', email: 'E-Mail-Adresse', subscribe: 'Jeden Dienstag eine Lektion' },
}

const app = new Hono()
app.use(
  '/',
  languageDetector({
    supportedLanguages: ['en', 'de'],
    fallbackLanguage: 'en',
    order: ['header'],
    caches: false,
  }),
)
app.get('/', (c) => {
  const language = c.get('language') === 'de' ? 'de' : 'en'
  const { title, email, subscribe } = TEXTS[language]
  c.header('Vary', 'Accept-Language')
  return c.html(`<!doctype html>
<html lang="${language}"><title>${title}</title>
<h1>${title}</h1>
<form method="post" action="/api/email/subscribe">
  <input type="hidden" name="language" value="${language}">
  <label>${email} <input name="email" type="email" required></label>
  <button>${subscribe}</button>
</form>`)
})
// The platform's status page is its start page. Everything else keeps its own path: links in mails lead there.
app.get('/status', (c) => platform.web.fetch(new Request(new URL('/', c.req.url), c.req.raw), c.env))
app.all('*', (c) => platform.web.fetch(c.req.raw, c.env))

const server = serve(
  { fetch: app.fetch, port: Number(process.env.PORT ?? 8080), hostname: '127.0.0.1' },
  ({ port }) => console.log(`http://127.0.0.1:${port}`),
)

process.once('SIGTERM', () => server.close(() => platform.close()))
