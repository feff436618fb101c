import { silentLog, systemClock, systemRandom } from '../../src/core/host.ts'
import type { DaemonOptions } from '../../src/daemon/options.ts'
import { type RunningDaemon, startDaemon } from '../../src/daemon/start.ts'
import { learning } from '../../src/presets/learning/platform.ts'

/** A daemon of the default platform on free ports: the web service alone, without a schedule, unless told. */
export function startLearningDaemon(
  options: Partial<DaemonOptions> & Pick<DaemonOptions, 'env' | 'dataFolder'>,
): Promise<RunningDaemon> {
  return startDaemon({
    platform: learning,
    services: ['web'],
    host: '127.0.0.1',
    ports: { web: 0, api: 0, agent: 0 },
    schedule: false,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    ...options,
  })
}
