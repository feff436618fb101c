import { createContract } from '../../core/env/contract.ts'
import { learningGroups } from './groups.ts'
import { learningServices } from './services.ts'

/** The default platform's variables and rules, for programs that only read its environment. */
export const learningEnvironment = {
  contract: createContract({
    services: learningServices.map(({ name }) => name),
    groups: learningGroups,
  }),
  services: learningServices,
}
