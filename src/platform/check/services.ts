import type { ExpectedAnswer } from '../../core/health/reach.ts'
import { HEALTH_PATHS } from '../../core/service.ts'
import { isVariableName, PROBE_TARGETS, type ProbeInput, type ServiceInput } from '../definition.ts'
import { fieldsOf, textOf } from './names.ts'
import { typeName } from './place.ts'
import { type Check, called, code, duration, flag, like, map, needed, object, oneOf, text } from './shape.ts'

/** The members of `openPlatform`'s result other than the services: a service cannot have one of these names. */
const TAKEN = ['health', 'dispatch', 'validate', 'close', 'courses', 'then']
const SERVICE_NAME = called(/^(?!.*-(?:-|$))[a-z][a-z0-9-]{0,30}$/, 'a service', 'bookings')
const variableName = oneOf(({ variables }) => variables, 'a variable of this platform')

/** The variable that holds an address, or several. */
const address: Check = (place, value, names) => {
  const all: readonly unknown[] = [value].flat()
  if (all.length === 0) place.fault('The list is empty.', 'Name the variable that holds the address.')
  for (const [index, entry] of all.entries()) {
    const here = Array.isArray(value) ? place.at(index) : place
    if (typeof entry === 'string' && /^https?:\/\//.test(entry)) {
      here.fault(
        'This is an address, and it differs between environments.',
        "Put it in a variable of the kind url, and name that: address: 'BOOKINGS_URL'.",
      )
      continue
    }
    const name = textOf(variableName(here, entry, names))
    const kind = names.kindOf(name)
    if (typeof kind === 'string' && kind !== 'url')
      here.fault(
        `${name} is of the kind ${kind}, and an address is a url.`,
        `Set kind: 'url' for ${name}, or name another variable.`,
      )
  }
}

export const service = object<ServiceInput>(
  'a service',
  {
    address,
    health: like(
      /^\/[^\s?#]*$/,
      'the path of a health endpoint',
      "Begin it with /, without spaces, ? or #: health: '/healthz'.",
    ),
    format: oneOf(Object.keys(HEALTH_PATHS), 'a format of health answers'),
    port: (place, port) =>
      typeof port === 'number' && Number.isInteger(port) && port >= 0 && port <= 65_535
        ? port
        : place.fault(
            `This is ${typeof port === 'number' ? 'no port' : typeName(port)}.`,
            'Write a whole number from 0 to 65535; 0 takes a free one.',
          ),
    label: text(60),
    group: text(60),
    // Checked with those of all others.
    dependsOn: () => undefined,
  },
  (place, { address: at, format, port }, { preset }) => {
    const name = place.key
    if (TAKEN.includes(name))
      place.fault(
        `${name} is what openPlatform calls something else that it gives.`,
        'Name the service differently.',
      )
    const isKnown = preset.services.some((known) => known.name === name)
    if (format === undefined && port === undefined && at === undefined && !isKnown)
      place.fault(
        `Nothing says where ${name} is: it has no address, and this process does not serve it.`,
        "Add address: 'NAME' and a format for another program, or a port to serve it here.",
      )
    if (format === undefined) return
    if (name === 'web')
      place.fault(
        'The service web is served by this process, so nothing foreign answers for it.',
        'Remove the format, or name the other program differently.',
        'format',
      )
    else if (at === undefined)
      place.fault(
        `${name} is another program, and nothing says where it is.`,
        `Add address: 'NAME', the variable that holds its address.`,
      )
    else if (port !== undefined)
      place.fault(
        `${name} is another program, and this process cannot serve it.`,
        'Remove the port, or remove the format.',
        'port',
      )
  },
)

export const services: Check = (place, value, names) => {
  /** By its port, and by what the command line makes of the name for `--NAME-port`. */
  const taken = new Map<number | string, string>()
  map('services', SERVICE_NAME, (here, of) => {
    const port = (service(here, of, names) as { readonly port?: number } | undefined)?.port
    if (port === undefined) return
    const option = here.key.replaceAll(/-(?=\d)/g, '')
    const [other, like] = [taken.get(port), taken.get(option)]
    if (other !== undefined && port !== 0)
      here.fault(`The service ${other} has the port ${port} already.`, 'Choose another port.', 'port')
    if (like !== undefined)
      here.fault(`The command line cannot tell ${here.key} from ${like}.`, 'Rename one of the two.')
    taken.set(port, other ?? here.key).set(option, here.key)
  })(place, value, names)
  if (!names.services.includes('web') && typeof fieldsOf(value) !== 'string')
    place.fault('There is no service web, and it serves the routes.', 'Add web: {}.')
}

const PROBE_NAME = called(/^[a-z][a-z0-9_-]{0,39}$/, 'a probe', 'kiln or kiln_queue')

/** A target that is not the name of a variable; a password is never in one. */
const target =
  (kind: string, pattern: RegExp, example: string): Check =>
  (place, value, names) => {
    const form = `Write it as ${kind}: '${example}', or name a variable that holds it.`
    if (typeof value !== 'string') return place.fault(`This is ${typeName(value)}, not a target.`, form)
    if (isVariableName(value)) return variableName(place, value, names)
    if (/:\/\/[^/\s]*@/.test(value))
      return place.fault(
        'The address holds a user or a password, and the source is no place for it.',
        'Put the address in a variable, and name that here.',
      )
    return pattern.test(value) ? value : place.fault(`This is no target for ${kind}.`, form)
  }
const HOST_AND_PORT = /^(?:[\w.-]+|\[[\da-f:]+\]):\d{1,5}$/i

const EXPECTED = "Write expect: { contains: 'pong' } or expect: { json: { status: 'up' } }."
const expected = object<ExpectedAnswer>(
  'an expected answer',
  {
    contains: text(1000),
    json: map('values by path', undefined, (place, value) =>
      value === null || ['string', 'number', 'boolean'].includes(typeof value)
        ? value
        : place.fault(`This is ${typeName(value)}, not one value.`, EXPECTED),
    ),
  },
  (place, { contains, json }) => {
    if (contains === undefined && json === undefined)
      place.fault('Nothing is expected of the answer.', EXPECTED)
  },
)

export const probe = object<ProbeInput>(
  'a probe',
  {
    service: needed(oneOf(({ services: known }) => known, 'a service')),
    group: oneOf(({ groups }) => groups, 'a group'),
    http: target('http', /^https?:\/\/[^\s/@]+(?:\/\S*)?$/, 'https://api.example.com/ping'),
    expect: expected,
    tcp: target('tcp', HOST_AND_PORT, 'queue.internal:5672'),
    tls: target('tls', HOST_AND_PORT, 'www.example.com:443'),
    dns: target('dns', /^(?=.{1,253}$)[\w-]+(?:\.[\w-]+)+\.?$/, 'www.example.com'),
    smtp: target('smtp', /^smtps?:\/\/[^\s/@]+$/, 'smtp://mail.example.com:587'),
    postgres: target('postgres', /^postgres(?:ql)?:\/\/[^\s@]+$/, 'STORE_URL'),
    redis: target('redis', /^rediss?:\/\/[^\s@]+$/, 'redis://cache.internal:6379'),
    check: code("Write check: async ({ signal }) => ({ state: 'ok' })."),
    deadline: duration(50, 30_000, "'2s'", 'from 50ms to 30s'),
    optional: flag,
    label: text(60),
    meaning: text(),
    dependsOn: () => undefined,
  },
  (place, fields, { foreign, preset }) => {
    const of = textOf(fields.service)
    if (foreign.includes(of))
      place.fault(
        `${of} is another program, so this process does not answer for its health.`,
        "Use service: 'web', or a service that this process serves.",
        'service',
      )
    if (preset.probes.some((known) => known.service === of && known.name === place.key))
      place.fault(`The service ${of} has a probe ${place.key} already.`, 'Choose another name.')
    const [first, second] = [...PROBE_TARGETS, 'check' as const].filter((name) => fields[name] !== undefined)
    if (first === undefined)
      place.fault(
        'The probe has no target.',
        `Give it one of ${PROBE_TARGETS.join(', ')}, or check, a function.`,
      )
    if (second !== undefined)
      place.fault(`The probe has two targets, ${first} and ${second}.`, 'Write two probes.')
    if (fields.expect !== undefined && fields.http === undefined)
      place.fault('Only an answer to http can be expected.', 'Remove it.', 'expect')
  },
)
export const probes = map('probes', PROBE_NAME, probe)
