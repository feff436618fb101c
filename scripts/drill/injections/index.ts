import type { Cell } from '../product.ts'
import type { World } from '../world.ts'
import { clock } from './clock.ts'
import { definitions, fileOwner, templates } from './files.ts'
import type { Injection } from './injection.ts'
import { disk, memory } from './machine.ts'
import { mail } from './mail.ts'
import { certificate, dns } from './network.ts'
import { proxy } from './proxy.ts'
import { secondDaemon } from './second-daemon.ts'
import { store } from './store.ts'
import { webhook } from './webhook.ts'

const COMPONENTS: Readonly<
  Record<Cell['component'], (cell: Cell, world: World) => Injection | Promise<Injection>>
> = {
  ...{ store, mail, DNS: dns, clock, disk, memory, webhook, template: templates, certificate, proxy },
  ...{ 'file owner': fileOwner, definition: definitions, 'second daemon': secondDaemon },
}

export const injectionOf = (cell: Cell, world: World) => COMPONENTS[cell.component](cell, world)
