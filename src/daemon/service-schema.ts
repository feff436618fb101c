import * as z from 'zod'

/** Stands in a JSON Schema where `openapiDocument` writes the services of the platform. */
export const SERVICE_MARK = 'x-service'

/** The name of a service; the document lists those of the platform. */
export const ServiceName = z.string().meta({ [SERVICE_MARK]: true })
