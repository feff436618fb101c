import * as z from 'zod'
import { PlatformError } from '../../core/errors.ts'
import { incidentOf } from '../../core/status/words.ts'
import { htmlResponse } from '../http/respond.ts'
import { defineRoute, inPath, text } from '../http/route.ts'
import { incidentPage, incidentsPage } from '../pages/status/page.ts'
import { inputOf, statusScript, summaryReader } from './status.ts'

export const route = () =>
  defineRoute({
    tag: 'Pages',
    summary: 'The page of an incident',
    parameters: [
      inPath(
        'page',
        'As the status page links to it; `index.html` lists all incidents.',
        'index.html',
        z.string().regex(/^(?:index|.+-\d+(?:\.\d+)?)\.html$/),
      ),
    ],
    answers: [text('text/html', 'Who felt the incident, its timeline, and what came of it.')],
    errors: ['not_found', 'store_unavailable'],
    handle(site) {
      const read = summaryReader(site)
      return async ({ params: { page = '' }, frame }) => {
        const input = { ...inputOf(site, await read(), frame), script: await statusScript() }
        if (page === 'index.html') return htmlResponse(incidentsPage(input))
        const found = incidentOf(page.replace(/\.html$/, ''), input.summary.incidents)
        if (found === undefined)
          throw new PlatformError('not_found', 'There is no such incident, or it is no longer kept.')
        return htmlResponse(incidentPage(input, found))
      }
    },
  })
