import { composeFiles } from './compose.ts'
import { dockerFiles } from './docker.ts'
import { kubernetesFiles } from './kubernetes.ts'
import type { DeployFile, Places, Subject } from './subject.ts'
import { systemdFiles } from './systemd.ts'

export const TARGETS = ['systemd', 'docker', 'compose', 'kubernetes'] as const
export type Target = (typeof TARGETS)[number]

/** The folder for the files of a target, from that of the definition. */
export const FOLDERS: Readonly<Record<Target, string>> = {
  systemd: 'deploy/systemd',
  docker: 'deploy',
  compose: 'deploy',
  kubernetes: 'deploy/kubernetes',
}

/** The files that deploy a platform, complete. */
export function deployFiles(target: Target, subject: Subject, places: Places): readonly DeployFile[] {
  switch (target) {
    case 'systemd':
      return systemdFiles(subject)
    case 'docker':
      return dockerFiles(subject, places)
    case 'compose':
      return [...dockerFiles(subject, places), ...composeFiles(subject, places)]
    case 'kubernetes':
      return kubernetesFiles(subject)
  }
}
