import { handle } from '../../../handle.js'

export const dynamic = 'force-dynamic'
export { handle as DELETE, handle as GET, handle as HEAD, handle as PATCH, handle as POST, handle as PUT }
