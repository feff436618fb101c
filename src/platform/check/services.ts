import { parseDuration } from '../../core/env/values.ts'
import { isVariableName } from '../definition.ts'
import {
  booleanAt,
  fieldsAt,
  formAt,
  knownFieldsAt,
  nameAt,
  type Place,
  quoted,
  textAt,
  typeName,
} from './fault.ts'
import type { Names } from './names.ts'

export const SERVICE_FIELDS = ['address', 'health', 'format', 'port', 'label', 'dependsOn'] as const
const HEALTH_FORMATS = ['platformctl', 'health+json', 'spring', 'aspnet', 'status'] as const

/** The members of `openPlatform`'s result other than the services: a service cannot have one of these names. */
const TAKEN = ['health', 'dispatch', 'validate', 'close', 'courses', 'then']
const SERVICE_NAME = { pattern: /^[a-z][a-z0-9-]{0,30}$/, what: 'a service', example: 'bookings' }

export function checkServices(place: Place, value: unknown, names: Names): void {
  if (value === undefined) return
  const services = fieldsAt(place, value, 'services')
  if (services === undefined) return
  if (!Object.hasOwn(services, 'web'))
    place.fault('There is no service web, and it serves the routes.', 'Add web: {}.')
  const ports = new Map<number, string>()
  for (const [name, service] of Object.entries(services)) {
    const here = place.at(name)
    formAt(here, name, SERVICE_NAME)
    const fields = knownFieldsAt(here, service, 'a service', SERVICE_FIELDS)
    if (fields === undefined) continue
    if (TAKEN.includes(name))
      here.fault(
        `${name} is what openPlatform calls something else that it gives.`,
        'Name the service differently.',
      )
    const known = names.preset.services.find((service) => service.name === name)
    if (fields.format === undefined && fields.port === undefined && fields.address === undefined && !known)
      here.fault(
        `Nothing says where ${name} is: it has no address, and this process does not serve it.`,
        "Add address: 'NAME' and a format for another program, or a port to serve it here.",
      )
    checkAddress(here.at('address'), fields.address, names)
    checkPath(here.at('health'), fields.health)
    textAt(here.at('label'), fields.label, 60)
    if (fields.format !== undefined)
      nameAt(here.at('format'), fields.format, HEALTH_FORMATS, 'a format of health answers')
    if (name === 'web' && fields.format !== undefined)
      here.fault(
        'The service web is served by this process, so nothing foreign answers for it.',
        'Remove the format, or name the other program differently.',
        'format',
      )
    else if (fields.format !== undefined && fields.address === undefined)
      here.fault(
        `${name} is another program, and nothing says where it is.`,
        `Add address: 'NAME', the variable that holds its address.`,
      )
    else if (fields.format !== undefined && fields.port !== undefined)
      here.fault(
        `${name} is another program, and this process cannot serve it.`,
        'Remove the port, or remove the format.',
        'port',
      )
    const port = checkPort(here.at('port'), fields.port)
    const other = port === undefined || port === 0 ? undefined : ports.get(port)
    if (other !== undefined)
      here.at('port').fault(`The service ${other} has the port ${port} already.`, 'Choose another port.')
    else if (port !== undefined) ports.set(port, name)
  }
}

function checkAddress(place: Place, value: unknown, names: Names): void {
  if (value === undefined) return
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (list.length === 0) place.fault('The list is empty.', 'Name the variable that holds the address.')
  for (const [index, entry] of list.entries()) {
    const here = Array.isArray(value) ? place.at(index) : place
    if (typeof entry === 'string' && /^https?:\/\//.test(entry)) {
      here.fault(
        'This is an address, and it differs between environments.',
        "Put it in a variable of the kind url, and name that: address: 'BOOKINGS_URL'.",
      )
      continue
    }
    const name = nameAt(here, entry, names.variables, 'a variable of this platform')
    const kind = name === undefined ? undefined : names.kindOf(name)
    if (kind !== undefined && kind !== 'url')
      here.fault(
        `${name} is of the kind ${kind}, and an address is a url.`,
        `Set kind: 'url' for ${name}, or name another variable.`,
      )
  }
}

function checkPath(place: Place, value: unknown): void {
  if (value === undefined) return
  if (typeof value !== 'string' || !/^\/[^\s?#]*$/.test(value))
    place.fault(
      'The path of a health endpoint begins with / and has no spaces, ? or #.',
      "Write it as health: '/healthz'.",
    )
}

function checkPort(place: Place, value: unknown): number | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535) return value
  return place.fault(
    `This is ${typeof value === 'number' ? 'no port' : typeName(value)}.`,
    'Write a whole number from 0 to 65535; 0 takes a free one.',
  )
}

export const PROBE_FIELDS = [
  'service',
  'group',
  'http',
  'expect',
  'tcp',
  'tls',
  'dns',
  'smtp',
  'postgres',
  'redis',
  'check',
  'deadline',
  'optional',
  'label',
  'meaning',
  'dependsOn',
] as const

const PROBE_NAME = { pattern: /^[a-z][a-z0-9_-]{0,39}$/, what: 'a probe', example: 'kiln or kiln_queue' }

/** Format of each target that is not the name of a variable, and whether it can hold a password. */
const TARGETS = {
  http: { pattern: /^https?:\/\/[^\s/@]+(?:\/\S*)?$/, form: "http: 'https://api.example.com/ping'" },
  tcp: { pattern: /^(?:[\w.-]+|\[[\da-f:]+\]):\d{1,5}$/i, form: "tcp: 'queue.internal:5672'" },
  tls: { pattern: /^(?:[\w.-]+|\[[\da-f:]+\]):\d{1,5}$/i, form: "tls: 'www.example.com:443'" },
  dns: { pattern: /^(?=.{1,253}$)[\w-]+(?:\.[\w-]+)+\.?$/, form: "dns: 'www.example.com'" },
  smtp: { pattern: /^smtps?:\/\/[^\s/@]+$/, form: "smtp: 'smtp://mail.example.com:587'" },
  postgres: { pattern: /^postgres(?:ql)?:\/\/[^\s@]+$/, form: "postgres: 'STORE_URL'" },
  redis: { pattern: /^rediss?:\/\/[^\s@]+$/, form: "redis: 'redis://cache.internal:6379'" },
} as const
const TARGET_NAMES = Object.keys(TARGETS) as (keyof typeof TARGETS)[]

export function checkProbes(
  place: Place,
  value: unknown,
  names: Names & { readonly foreign: readonly string[] },
): void {
  if (value === undefined) return
  for (const [name, probe] of Object.entries(fieldsAt(place, value, 'probes') ?? {})) {
    const here = place.at(name)
    formAt(here, name, PROBE_NAME)
    const fields = knownFieldsAt(here, probe, 'a probe', PROBE_FIELDS)
    if (fields === undefined) continue
    const service = nameAt(here.at('service'), fields.service, names.services, 'a service')
    if (service !== undefined && names.foreign.includes(service))
      here.fault(
        `${service} is another program, so this process does not answer for its health.`,
        "Use service: 'web', or a service that this process serves.",
        'service',
      )
    if (names.preset.probes.some((known) => known.service === service && known.name === name))
      here.fault(`The service ${service} has a probe ${name} already.`, 'Choose another name.')
    if (fields.group !== undefined) nameAt(here.at('group'), fields.group, names.groups, 'a group')
    checkTarget(here, fields, names)
    checkExpected(here.at('expect'), fields)
    booleanAt(here.at('optional'), fields.optional)
    textAt(here.at('label'), fields.label, 60)
    textAt(here.at('meaning'), fields.meaning)
    checkDuration(here.at('deadline'), fields.deadline, {
      low: 50,
      high: 30_000,
      form: "'2s'",
      bounds: 'from 50ms to 30s',
    })
  }
}

function checkTarget(place: Place, fields: Readonly<Record<string, unknown>>, names: Names): void {
  const [target, second] = [...TARGET_NAMES, 'check' as const].filter((name) => fields[name] !== undefined)
  if (target === undefined) {
    place.fault(
      'The probe has no target.',
      `Give it one of ${TARGET_NAMES.join(', ')}, or check, a function.`,
    )
    return
  }
  if (second !== undefined) {
    place.fault(`The probe has two targets, ${target} and ${second}.`, 'Write two probes.')
    return
  }
  const value = fields[target]
  const here = place.at(target)
  if (target === 'check') {
    if (typeof value !== 'function')
      here.fault(
        `This is ${typeName(value)}, not a function.`,
        "Write check: async ({ signal }) => ({ state: 'ok' }).",
      )
    return
  }
  const { pattern, form } = TARGETS[target]
  if (typeof value !== 'string') {
    here.fault(
      `This is ${typeName(value)}, not a target.`,
      `Write it as ${form}, or name a variable that holds it.`,
    )
  } else if (isVariableName(value)) {
    nameAt(here, value, names.variables, 'a variable of this platform')
  } else if (/:\/\/[^/\s]*@/.test(value)) {
    here.fault(
      'The address holds a user or a password, and the source is no place for it.',
      'Put the address in a variable, and name that here.',
    )
  } else if (!pattern.test(value)) {
    here.fault(`This is no target for ${target}.`, `Write it as ${form}, or name a variable that holds it.`)
  }
}

function checkExpected(place: Place, { http, expect }: Readonly<Record<string, unknown>>): void {
  if (expect === undefined) return
  const form = "Write expect: { contains: 'pong' } or expect: { json: { status: 'up' } }."
  if (http === undefined) return void place.fault('Only an answer to http can be expected.', 'Remove it.')
  const fields = knownFieldsAt(place, expect, 'an expected answer', ['contains', 'json'])
  if (fields === undefined) return
  if (fields.contains === undefined && fields.json === undefined)
    place.fault('Nothing is expected of the answer.', form)
  textAt(place.at('contains'), fields.contains, 1000)
  if (fields.json === undefined) return
  for (const [path, one] of Object.entries(fieldsAt(place.at('json'), fields.json, 'values by path') ?? {}))
    if (one !== null && !['string', 'number', 'boolean'].includes(typeof one))
      place.at('json').fault(`This is ${typeName(one)}, not one value.`, form, path)
}

/** A duration within bounds, in milliseconds. */
export function checkDuration(
  place: Place,
  value: unknown,
  input: { readonly low: number; readonly high: number; readonly form: string; readonly bounds: string },
): void {
  const { low, high, form, bounds } = input
  if (value === undefined) return
  const ms = typeof value === 'string' ? parseDuration(value) : undefined
  if (ms === undefined)
    place.fault(
      `This is ${typeof value === 'string' ? `${quoted(value)}, not a duration` : `${typeName(value)}, not a duration`}.`,
      `Write it with its unit, as ${form}.`,
    )
  else if (ms < low || ms > high)
    place.fault(`The duration ${quoted(value)} is out of bounds.`, `Choose one ${bounds}.`)
}
