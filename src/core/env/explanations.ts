/** What each warning means; the rules explain themselves. Every id that a validator or the reader gives stands here. */
export const WARNINGS: Readonly<Record<string, string>> = {
  'malformed-value':
    'The value does not have the form that the variable needs, so it behaves as if it were not set. Set it as the finding says.',
  'placeholder-value':
    'The value looks like one that was left behind from an example (changeme, xxx, <your-key>). Set the real one, or remove the line.',
  'wrong-prefix':
    'Keys of this kind start with a known prefix, and this one does not: it may be another key, pasted into the wrong line.',
  'test-key-in-production':
    'DEPLOY_ENVIRONMENT is production, and this key belongs to the provider’s test mode: nothing would really happen.',
  'live-key-outside-production':
    'This key belongs to the provider’s live mode, and DEPLOY_ENVIRONMENT is not production: a test would move real money.',
  'public-secret':
    'Variables named NEXT_PUBLIC_… are sent to every browser, and this one holds a secret key. Revoke the key at the provider.',
  'weak-secret':
    'A secret of our own choosing that can be guessed by trying. Make a new one, for example with: openssl rand -base64 32',
  'unknown-name': 'Nothing reads this variable, and its name is one slip away from one that is read.',
  'duplicate-name':
    'The same name is set twice in one file; the later line wins in most readers, and the earlier in some.',
  'shadowed-value':
    'Another source sets the same name and wins: the process environment over files, a later file over an earlier one.',
  'unreadable-line':
    'The line is neither an assignment nor a comment. Some readers skip it, others refuse the file.',
  'unterminated-quote':
    'A quote is opened and never closed. Some readers take the rest of the file as the value.',
  'text-after-quote': 'Text follows a closing quote. Readers disagree whether it belongs to the value.',
  'reader-difference':
    'Readers of env files understand this line differently, so the value depends on who starts the program. platformctl env dialects shows who sees what.',
  'refused-by-reader':
    'One of the readers that a deployment uses refuses the whole file, so the program would not start there.',
  'group-absent': 'A group of variables is not set at all. That is allowed; the notice says what it means.',
}
