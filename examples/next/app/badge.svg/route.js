import { handle } from '../../handle.js'

export const dynamic = 'force-dynamic'
export { handle as GET }
