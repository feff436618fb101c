import { seeded } from '../../test/simulation/seeded.ts'

/** What can fail, how, and when: the drill is the product of the three. */
export const COMPONENTS = [
  'store',
  'mail',
  'DNS',
  'clock',
  'disk',
  'memory',
  'file owner',
  'webhook',
  'definition',
  'template',
  'certificate',
  'proxy',
  'second daemon',
] as const
const HOWS = ['gone', 'slow', 'full', 'lying', 'flapping', 'wrong owner', 'wrong version', 'expired'] as const
const WHENS = ['start', 'running', 'drain', 'restore'] as const

type Component = (typeof COMPONENTS)[number]
type How = (typeof HOWS)[number]
export type When = (typeof WHENS)[number]

export interface Cell {
  readonly component: Component
  readonly how: How
  readonly when: When
  /** `store/slow/running` */
  readonly name: string
  /** Why it is out of scope; undefined: it is injected. */
  readonly reason: string | undefined
}

/** The cells that are out of scope, and why. A rule without a time is for every time; `*` is every way to fail. */
const OUT: Readonly<Record<string, string>> = {
  'mail/*/restore': 'a restore sends no mail',

  'DNS/full': 'a resolver holds nothing that fills up',
  'DNS/wrong owner': 'a name that belongs to somebody else answers as one that lies',
  'DNS/wrong version': 'DNS has one version; what does not speak it gives no answer, as one that is gone',
  'DNS/*/restore': 'a restore looks up no name',

  'clock/gone': 'every machine has a clock',
  'clock/full': 'a clock holds nothing that fills up',
  'clock/wrong owner': 'a clock has no owner',
  'clock/wrong version': 'a clock has no version',
  'clock/expired': 'a clock does not expire',
  'clock/*/restore': 'a restore finds its place in the journal by an anchor, not by the time',

  'disk/wrong owner': 'the files on a disk have owners: see file owner',
  'disk/wrong version': 'a file system that the kernel does not know is not mounted: see gone',
  'disk/expired': 'a disk does not expire; one that is worn out lies or is gone',
  'disk/slow/drain': 'a drain on a slow disk is late, and shows its progress to the operator who started it',
  'disk/slow/restore': 'a restore to a slow disk is late, and the operator who started it waits for it',

  'memory/slow': 'memory that is slow is a machine that swaps: see disk',
  'memory/lying': 'no program can tell that its own memory lies',
  'memory/wrong owner': 'the kernel gives no process the memory of another',
  'memory/wrong version': 'memory has no version',
  'memory/expired': 'memory does not expire',

  'file owner/slow': 'who owns a file takes no time',
  'file owner/full': 'quotas refuse as a disk that is full',
  'file owner/wrong version': 'an owner has no version',
  'file owner/expired': 'an account that has expired still owns its files',

  'webhook/lying': 'whether a receiver that says yes shows the message is known only to who reads it',
  'webhook/*/drain': 'a drain calls no webhook',
  'webhook/*/restore': 'a restore calls no webhook',

  'definition/slow': 'a definition is a file: it is as slow as the disk',
  'definition/full': 'a definition has no limit that files in use come near',
  'definition/flapping': 'a definition is read once, so a process sees it one way',
  'definition/expired': 'a definition has no date',

  'template/slow': 'a template is a file: it is as slow as the disk',
  'template/full': 'a template has no limit that files in use come near',
  'template/flapping': 'templates are read once, so a process sees them one way',
  'template/expired': 'a template has no date',
  'template/*/running': 'a running daemon does not read them again; its next start does',
  'template/*/restore': 'a restore sends no mail',

  'certificate/slow': 'a certificate takes no time; a slow handshake is a slow server',
  'certificate/full': 'a certificate holds nothing that fills up',
  'certificate/*/restore': 'a restore of a file opens no connection',

  'proxy/expired': 'a proxy refuses a password that has expired as it does one of another',
  'proxy/*/restore': 'a restore asks no other machine over HTTP',

  'second daemon/gone': 'one daemon alone is the usual case',
  'second daemon/expired': 'a daemon has no date; one that is old is of the wrong version',
  'second daemon/full/drain': 'two that drain share the work, and neither needs what the other holds',
  'second daemon/flapping/drain': 'two that drain share the work, also when one comes and goes',
  'second daemon/wrong owner/restore':
    'a restore puts back what the backup holds; the start after it compares the names',
  'second daemon/lying/drain': 'a drain is of one build, whatever another daemon says of its own',
  'second daemon/lying/restore': 'a restore is of one build, whatever another daemon says of its own',
}

/** The whole product. */
export const CELLS: readonly Cell[] = COMPONENTS.flatMap((component) =>
  HOWS.flatMap((how) =>
    WHENS.map((when) => ({
      ...{ component, how, when, name: `${component}/${how}/${when}` },
      reason:
        OUT[`${component}/${how}/${when}`] ?? OUT[`${component}/${how}`] ?? OUT[`${component}/*/${when}`],
    })),
  ),
)

export const IN_SCOPE = CELLS.filter(({ reason }) => reason === undefined)

/** The keys of rules that put no cell out of scope: misspelt, or hidden by another. */
export const idleRules = () => Object.keys(OUT).filter((key) => !CELLS.some((cell) => keyOf(cell) === key))

const keyOf = ({ component, how, when }: Cell) =>
  [`${component}/${how}/${when}`, `${component}/${how}`, `${component}/*/${when}`].find((key) => key in OUT)

/** As many cells as wanted, no two of one component while there are others, and the same for the same seed. */
export function draw(seed: number, count: number, from: readonly Cell[] = IN_SCOPE): readonly Cell[] {
  const { between } = seeded(seed)
  const left = [...from]
  const drawn: Cell[] = []
  while (drawn.length < count && left.length > 0) {
    const fewest = Math.min(...left.map((cell) => drawn.filter(isLike(cell)).length))
    const fresh = left.filter((cell) => drawn.filter(isLike(cell)).length === fewest)
    const [cell] = fresh.splice(between(0, fresh.length - 1), 1)
    if (cell === undefined) break
    drawn.push(cell)
    left.splice(left.indexOf(cell), 1)
  }
  return drawn
}

const isLike =
  ({ component }: Cell) =>
  (other: Cell) =>
    other.component === component
