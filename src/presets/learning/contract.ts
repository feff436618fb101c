import { createContract } from '../../core/env/contract.ts'
import { type ServiceDefinition, web } from '../../core/service.ts'
import { learningGroups } from './groups.ts'

export const api: ServiceDefinition = {
  name: 'api',
  label: 'API',
  summary: 'a one-qubit circuit end to end, the job store, and the providers',
  address: ['API_URL', 'NEXT_PUBLIC_API_URL'],
  health: '/api/health',
  port: 8000,
}

export const agent: ServiceDefinition = {
  name: 'agent',
  summary: 'the API, the course index, and the model providers',
  address: ['AGENT_URL', 'NEXT_PUBLIC_AGENT_URL'],
  health: '/api/agent/health',
  port: 8100,
}

const learningServices: readonly ServiceDefinition[] = [web, api, agent]

/** The default platform's variables and rules, for programs that only read its environment. */
export const learningEnvironment = {
  contract: createContract({ services: learningServices.map(({ name }) => name), groups: learningGroups }),
  services: learningServices,
}
