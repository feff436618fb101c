import { createContract } from '../../core/env/contract.ts'
import { learningGroups } from './groups.ts'
import { learningServices } from './services.ts'

/** What reading an environment of the default platform takes, for programs that need no more of it. */
export const learningEnvironment = {
  contract: createContract({
    services: learningServices.map(({ name }) => name),
    groups: learningGroups,
  }),
  services: learningServices,
}
