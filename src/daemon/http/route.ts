import type { RouteName } from '../../core/routes.ts'
import type { Frame } from '../pages/frame.ts'
import type { BodyShare } from './body-memory.ts'

/** Input of a route handler: the request, the path's parameters, and the client. */
export interface RouteRequest {
  readonly request: Request
  readonly url: URL
  readonly params: Readonly<Record<string, string>>
  readonly requestId: string
  /** Name of the declared route; undefined if none matches. */
  readonly route: RouteName | undefined
  /** The client as limits count it: an IPv4 address, an IPv6 /56, or `embedded` when there is no socket. */
  readonly client: string
  /** The client that an untrusted proxy names in X-Forwarded-For; undefined without one. */
  readonly behind: string | undefined
  /** The request comes from this machine itself, and through no proxy. */
  readonly isLocal: boolean
  /** Call this as soon as the request's secret has proved right. */
  passed: () => void
  /** Language, name and colors shared by all pages of the platform. */
  readonly frame: Frame
  /** True if a browser asked, which gets a page; programs get JSON. */
  readonly wantsHtml: boolean
  /** This request's share of the memory for bodies. */
  readonly bodyShare: BodyShare
  /** HEAD and prefetches must change nothing. */
  readonly isPassive: boolean
}

export type RouteHandler = (request: RouteRequest) => Response | Promise<Response>

/** A service's table: each declared route with what answers it. */
export type RouteTable = Partial<Record<RouteName, RouteHandler>>
