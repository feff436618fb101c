import { pictureResponse } from '../http/respond.ts'
import { defineRoute, text } from '../http/route.ts'
import { statusPicture } from '../pages/status/picture.ts'
import { summaryReader } from './status.ts'

export const route = () =>
  defineRoute({
    tag: 'Pages',
    summary: 'The state as a picture, for links that are shared',
    answers: [text('image/png', 'A picture of 1200 by 630 pixels.')],
    errors: ['store_unavailable'],
    handle(site) {
      const read = summaryReader(site)
      let drawn: { readonly of: string; readonly picture: Uint8Array<ArrayBuffer> } | undefined
      return async () => {
        const { state, services } = await read()
        const of = JSON.stringify([state, services.map(({ whole }) => whole.days)])
        if (drawn?.of !== of) drawn = { of, picture: statusPicture({ state, services }) }
        return pictureResponse(drawn.picture, 'image/png')
      }
    },
  })
