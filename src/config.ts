export type { Mailbox } from './core/address.ts'
export type { Environment } from './core/env/settings.ts'
export type { Report } from './core/env/validate.ts'
export type { Finding } from './core/finding.ts'
export type { Secret } from './core/secret.ts'
export type { Fault } from './platform/check/place.ts'
export type { PlatformEnvironment } from './platform/checked.ts'
export { definePlatform } from './platform/checked.ts'
export type {
  CheckContext,
  CheckResult,
  CourseInput,
  GroupInput,
  PlatformDefinition,
  ProbeInput,
  ServiceInput,
  TemplateInput,
  VariableInput,
} from './platform/definition.ts'
export { DefinitionError } from './platform/find.ts'
export { readPlatformEnv, registerPlatform, validatePlatformEnv } from './platform/read-env.ts'
