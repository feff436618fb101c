/**
 * The `target_session_attrs` that suit a store. The other values of libpq ask for a server that cannot be
 * written.
 */
const SESSIONS = new Set(['any', 'read-write', 'primary'])

/**
 * The address of each server that a PostgreSQL address names: several hosts are separated by commas, as libpq takes
 * them (`postgres://user:password@a:5432,b:5432/database?target_session_attrs=read-write`). Undefined: it is malformed.
 */
export function postgresServers(value: string): readonly string[] | undefined {
  const [, before = '', hosts = '', after = ''] =
    /^(postgres(?:ql)?:\/\/(?:[^/?#\s]*@)?)([^@/?#\s]+)([^\s]*)$/i.exec(value) ?? []
  const servers = hosts.split(',').map((host) => `${before}${host}${after}`)
  return servers.every(isServer) ? servers : undefined
}

/** `a.example:5432,b.example:5432/platform`: never the user or the password. */
export function postgresLocation(value: string): string {
  const servers = postgresServers(value) ?? []
  const { pathname } = new URL(servers[0] ?? 'postgres:')
  return `${servers.map(serverLocation).join(',')}${pathname}`
}

function serverLocation(server: string): string {
  const { hostname, port } = new URL(server)
  return `${hostname}:${port || '5432'}`
}

function isServer(server: string): boolean {
  const url = URL.parse(server)
  // An unescaped # would end the URL, and the text before it would be taken for the host.
  if (url === null || url.hostname === '' || url.hash !== '') return false
  return SESSIONS.has(url.searchParams.get('target_session_attrs') ?? 'any')
}
