/** Mutants that change nothing which anybody could notice, each with the reason; found by the text of their lines. */
export const EQUIVALENT: readonly {
  readonly file: string
  readonly before: string
  readonly after: string
  readonly reason: string
}[] = [
  {
    file: 'access/identity.ts',
    before:
      "const given = /^Bearer ([\\x21-\\x7e]{1,4096})$/i.exec(request.headers.get('authorization') ?? '')?.[1]",
    after:
      "const given = /^Bearer ([\\x21-\\x7e]{1,4096})$/i.exec(request.headers.get('authorization'))?.[1]",
    reason: 'A missing header becomes the text null, which does not match either; types refuse it.',
  },
  {
    file: 'access/identity.ts',
    before:
      "const given = /^Basic ([A-Za-z0-9+/]{1,8192}={0,2})$/i.exec(request.headers.get('authorization') ?? '')?.[1]",
    after:
      "const given = /^Basic ([A-Za-z0-9+/]{1,8192}={0,2})$/i.exec(request.headers.get('authorization'))?.[1]",
    reason: 'A missing header becomes the text null, which does not match either; types refuse it.',
  },
  {
    file: 'status/histogram.ts',
    before: 'write(histogram.get(bucket) ?? 0)',
    after: 'write(histogram.get(bucket) ?? (-1))',
    reason: 'The bucket is one of the keys, so there is always a count.',
  },
  {
    file: 'payments/checkout.ts',
    before: "override readonly name = 'AnswerError'",
    after: "override readonly name = ''",
    reason: 'The class tells our own faults apart; its name is written nowhere.',
  },
  {
    file: 'payments/checkout.ts',
    before: 'bodyTimeout: ANSWER_MS,',
    after: '',
    reason: 'The signal ends the whole request after the same time.',
  },
  {
    file: 'payments/checkout.ts',
    before: 'headersTimeout: ANSWER_MS,',
    after: '',
    reason: 'The signal ends the whole request after the same time.',
  },
  {
    file: 'access/identity.ts',
    before: '...(audience === undefined ? {} : { audience }),',
    after: '...((false) ? {} : { audience }),',
    reason: 'jose takes a claim that is undefined for one that nobody asked for.',
  },
  {
    file: 'access/identity.ts',
    before: '...(issuer === undefined ? {} : { issuer }),',
    after: '...((false) ? {} : { issuer }),',
    reason: 'jose takes a claim that is undefined for one that nobody asked for.',
  },
  {
    file: 'env/values.ts',
    before: 'if (match === null || unit === undefined || UNITS.indexOf(unit) >= last) return undefined',
    after: 'if (match === null && unit === undefined || UNITS.indexOf(unit) >= last) return undefined',
    reason: 'The unit is a part of the match: both are there or neither.',
  },
  {
    file: 'course/subscription.ts',
    before: "return record.state !== 'confirmed' || at < (record.confirmedAt ?? at)",
    after: "return record.state !== 'confirmed' || at < (record.confirmedAt)",
    reason: 'A comparison with undefined is false, as that of a moment with itself; types refuse it.',
  },
  {
    file: 'store/postgres/course.ts',
    before: 'day: nextDay(current.sentDays, current.lessons) ?? 0,',
    after: 'day: nextDay(current.sentDays, current.lessons),',
    reason: 'Nothing is resolved without a day in hand, so there is always one.',
  },
  {
    file: 'store/postgres/course.ts',
    before: 'day: nextDay(current.sentDays, current.lessons) ?? 0,',
    after: 'day: nextDay(current.sentDays, current.lessons) ?? (1),',
    reason: 'Nothing is resolved without a day in hand, so there is always one.',
  },
  {
    file: 'store/postgres/course.ts',
    before: 'day: nextDay(current.sentDays, current.lessons) ?? 0,',
    after: 'day: nextDay(current.sentDays, current.lessons) ?? (-1),',
    reason: 'Nothing is resolved without a day in hand, so there is always one.',
  },
  {
    file: 'store/sqlite/course.ts',
    before: 'const day = nextDay(current.sentDays, current.lessons) ?? 0',
    after: 'const day = nextDay(current.sentDays, current.lessons)',
    reason: 'Nothing is resolved without a day in hand, so there is always one.',
  },
  {
    file: 'store/sqlite/course.ts',
    before: 'const day = nextDay(current.sentDays, current.lessons) ?? 0',
    after: 'const day = nextDay(current.sentDays, current.lessons) ?? (1)',
    reason: 'Nothing is resolved without a day in hand, so there is always one.',
  },
  {
    file: 'store/sqlite/course.ts',
    before: 'const day = nextDay(current.sentDays, current.lessons) ?? 0',
    after: 'const day = nextDay(current.sentDays, current.lessons) ?? (-1)',
    reason: 'Nothing is resolved without a day in hand, so there is always one.',
  },
  {
    file: 'lint/lint.ts',
    before: '(one?.column ?? 0) - (other?.column ?? 0)',
    after: '(one?.column ?? (1)) - (other?.column ?? 0)',
    reason: 'A place always has a column, and of two findings without one the first stays first either way.',
  },
  {
    file: 'lint/lint.ts',
    before: '(one?.column ?? 0) - (other?.column ?? 0)',
    after: '(one?.column ?? 0) - (other?.column ?? (-1))',
    reason: 'A place always has a column, and of two findings without one the first stays first either way.',
  },
  {
    file: 'transports/smtp-session.ts',
    before: "bytes.includes('\\n.') ||",
    after: "bytes.includes('') ||",
    reason: 'Escaping is right for all bytes; without need it only takes longer.',
  },
  {
    file: 'transports/smtp-session.ts',
    before: "bytes.includes('\\r.') ||",
    after: "bytes.includes('') ||",
    reason: 'Escaping is right for all bytes; without need it only takes longer.',
  },
  {
    file: 'feedback/pacer.ts',
    before: 'return places.shift() ?? 0',
    after: 'return places.shift()',
    reason: 'A slot was reserved just before if none was left, so there is always one.',
  },
  {
    file: 'feedback/pacer.ts',
    before: 'return places.shift() ?? 0',
    after: 'return places.shift() ?? (1)',
    reason: 'A slot was reserved just before if none was left, so there is always one.',
  },
  {
    file: 'feedback/pacer.ts',
    before: 'return places.shift() ?? 0',
    after: 'return places.shift() ?? (-1)',
    reason: 'A slot was reserved just before if none was left, so there is always one.',
  },
  {
    file: 'access/client.ts',
    before:
      "const [a = '0', b = '0', c = '0', d = '0'] = all.map((group) => Number.parseInt(group, 16).toString(16))",
    after:
      "const [a = '', b = '0', c = '0', d = '0'] = all.map((group) => Number.parseInt(group, 16).toString(16))",
    reason: 'A valid address has eight groups by then, so no default is ever taken.',
  },
  {
    file: 'access/client.ts',
    before:
      "const [a = '0', b = '0', c = '0', d = '0'] = all.map((group) => Number.parseInt(group, 16).toString(16))",
    after:
      "const [a = '0', b = '', c = '0', d = '0'] = all.map((group) => Number.parseInt(group, 16).toString(16))",
    reason: 'A valid address has eight groups by then, so no default is ever taken.',
  },
  {
    file: 'access/client.ts',
    before:
      "const [a = '0', b = '0', c = '0', d = '0'] = all.map((group) => Number.parseInt(group, 16).toString(16))",
    after:
      "const [a = '0', b = '0', c = '', d = '0'] = all.map((group) => Number.parseInt(group, 16).toString(16))",
    reason: 'A valid address has eight groups by then, so no default is ever taken.',
  },
  {
    file: 'access/client.ts',
    before:
      "const [a = '0', b = '0', c = '0', d = '0'] = all.map((group) => Number.parseInt(group, 16).toString(16))",
    after:
      "const [a = '0', b = '0', c = '0', d = ''] = all.map((group) => Number.parseInt(group, 16).toString(16))",
    reason: 'A valid address has eight groups by then, so no default is ever taken.',
  },
  {
    file: 'network/connect.ts',
    before: 'if (waiting.length > 0) timer = setTimeout(next, STAGGER_MS)',
    after: 'if (waiting.length > (-1)) timer = setTimeout(next, STAGGER_MS)',
    reason: 'Without another address the timer does nothing when it fires, and is cleared with the others.',
  },
  {
    file: 'network/connect.ts',
    before: 'if (waiting.length > 0) timer = setTimeout(next, STAGGER_MS)',
    after: 'if (waiting.length >= 0) timer = setTimeout(next, STAGGER_MS)',
    reason: 'Without another address the timer does nothing when it fires, and is cleared with the others.',
  },
  {
    file: 'network/connect.ts',
    before: 'if (waiting.length > 0) timer = setTimeout(next, STAGGER_MS)',
    after: 'if ((true)) timer = setTimeout(next, STAGGER_MS)',
    reason: 'Without another address the timer does nothing when it fires, and is cleared with the others.',
  },
  {
    file: 'network/connect.ts',
    before: "lookup(host, { all: true, order: 'verbatim' }, (error, addresses) =>",
    after: 'lookup(host, { all: true,  }, (error, addresses) =>',
    reason: 'It is the default of Node, and differs only where an option of the process says so.',
  },
  {
    file: 'daemon/alerts.ts',
    before: 'let following: Promise<boolean> = Promise.resolve(false)',
    after: 'let following: Promise<boolean> = Promise.resolve(true)',
    reason: 'It is only waited for; nothing reads the value that it begins with.',
  },
  {
    file: 'cli/commands/beat.ts',
    before:
      'resolve({ exitCode: code ?? 128 + (signal === null ? 0 : constants.signals[signal]), interrupted }),',
    after: 'resolve({ exitCode: code ?? 128 + ((false) ? 0 : constants.signals[signal]), interrupted }),',
    reason: 'Node gives an exit code or a signal: without a code there is always a signal. Types refuse it.',
  },
]
