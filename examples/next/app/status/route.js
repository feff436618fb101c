import { handle } from '../../handle.js'

export const dynamic = 'force-dynamic'
/** The status page is at / where platformctl serves; here that is the site's own. */
export const GET = (request) => handle(new Request(new URL('/', request.url), request))
