import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { codeError } from './errors.ts'

/** Why a file cannot be read, by the code of the error. */
export const READ_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EACCES: 'may not be read by this user',
  EFTYPE: 'is not a regular file',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'is not valid UTF-8',
}

/** Works on a file that another user may have put there: one that is no regular file is refused, where opening a pipe would wait. */
export function withFile<T>(file: string, work: (descriptor: number) => T, flags = constants.O_RDONLY): T {
  // Windows has no such flag.
  const descriptor = openSync(file, flags | (constants.O_NONBLOCK ?? 0), 0o600)
  try {
    if (!fstatSync(descriptor).isFile()) throw codeError('EFTYPE')
    return work(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

export const readWhole = (file: string) => withFile(file, (descriptor) => readFileSync(descriptor, 'utf8'))
