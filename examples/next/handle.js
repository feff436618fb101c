import { platform } from './platform.js'

export const handle = (request) => platform.web.fetch(request)
