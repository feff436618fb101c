import * as z from 'zod'
import { once } from '../../core/once.ts'
import { WEB } from '../../core/service.ts'
import { jsonResponse } from '../http/respond.ts'
import { defineRoute, json } from '../http/route.ts'
import { openapiDocument } from '../openapi.ts'

const OpenapiAnswer = z.looseObject({ openapi: z.string(), paths: z.record(z.string(), z.unknown()) })

export const route = () =>
  defineRoute({
    tag: 'Operations',
    summary: 'This document',
    answers: [
      json('OpenAPI 3.1, made from the schemas that validate.', 'OpenApi', OpenapiAnswer, {
        document: { openapi: '3.1.1', paths: {} },
      }),
    ],
    handle: ({ platform, routes, settings: { addresses, site } }) => {
      const portOf = (name: string) => platform.services.find((service) => service.name === name)?.port
      const addressOf = (name: string) =>
        name === WEB ? site.siteUrl : (addresses.get(name) ?? `http://127.0.0.1:${portOf(name)}`)
      const document = once(() => openapiDocument(platform, routes, addressOf))
      return async () => jsonResponse(await document())
    },
  })
