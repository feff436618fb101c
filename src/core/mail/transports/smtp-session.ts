import type { Readable, Transform } from 'node:stream'
import SMTPConnection, { type SMTPConnectionOptions } from 'nodemailer/lib/smtp-connection'
import { causeOf } from '../../network/causes.ts'
import type { WaitUntilRecorded } from '../mailer.ts'
import type { SmtpFault } from '../outcome.ts'

/** One open, authenticated connection to the mail server. */
export interface SmtpSession {
  /** False once the connection has ended, from either side. */
  readonly alive: boolean
  /** Messages handed over on it so far. */
  readonly sent: number
  /**
   * Undefined: the server has taken it. Never rejects. Aborting ends the connection. With `recorded`, a message is
   * completed only after the last such one taken on this connection is recorded, so that a crash repeats at most one.
   */
  send(
    message: { readonly from: string; readonly to: string; readonly bytes: Buffer },
    signal: AbortSignal | undefined,
    recorded?: WaitUntilRecorded,
  ): Promise<SmtpFault | undefined>
  quit(): void
}

export interface SessionOptions extends SMTPConnectionOptions {
  readonly auth: { readonly user: string; readonly pass: string } | undefined
  /** How long to wait for each reply before a message is handed over, and for the reply to the message. */
  readonly silenceMs: number
  readonly finalReplyMs: number
}

/** Rejects with an SmtpFault. `onEnd` is called once the connection has ended and what it carried is recorded. */
export function openSession(
  { auth, silenceMs, finalReplyMs, ...options }: SessionOptions,
  onEnd: () => void,
  signal?: AbortSignal,
): Promise<SmtpSession> {
  return new Promise((resolve, reject: (fault: SmtpFault) => void) => {
    const line = new SMTPConnection(options)
    const session = { alive: true, sent: 0, send, quit: () => line.quit() }
    let before: WaitUntilRecorded | undefined
    const stopWaiting = () => {
      clearTimeout(patience)
      signal?.removeEventListener('abort', stop)
    }
    const fail = (error: unknown) => {
      stopWaiting()
      reject(faultOf(error, false))
      line.close()
    }
    const stop = () => fail(undefined)
    const patience = setTimeout(() => fail({ timeoutType: 'silence' }), silenceMs)
    signal?.addEventListener('abort', stop, { once: true })
    const ready = () => {
      stopWaiting()
      resolve(session)
    }
    // Once open, a fault of the connection also fails the message in flight; an idle connection just ends.
    line.on('error', fail)
    line.once('end', () => {
      session.alive = false
      fail(undefined)
      if (before === undefined) onEnd()
      else before().then(onEnd, onEnd)
    })
    line.connect((error?: unknown) => {
      if (error) fail(error)
      else if (auth === undefined) ready()
      // Without credentials the server would answer each message with a refusal of its own wording.
      else if (!line.allowsAuth) {
        reject({ ...NO_REPLY, command: 'auth' })
        line.close()
      } else line.login({ ...auth }, (refused) => (refused ? fail(refused) : ready()))
    })

    function send(...[{ from, to, bytes }, abort, recorded]: Parameters<SmtpSession['send']>) {
      session.sent += 1
      const mayComplete = recorded && before
      return new Promise<SmtpFault | undefined>((finished) => {
        let handedOver = false
        let ended = false
        let patience: NodeJS.Timeout | undefined
        const finish = (fault: SmtpFault | undefined) => {
          ended = true
          clearTimeout(patience)
          abort?.removeEventListener('abort', stop)
          finished(fault)
        }
        const giveUp = (command: SmtpFault['command']) => {
          line.close()
          finish({ ...NO_REPLY, command, handedOver })
        }
        const stop = () => giveUp('data')
        if (abort?.aborted) return stop()
        patience = setTimeout(stop, silenceMs)
        abort?.addEventListener('abort', stop, { once: true })
        const complete = (target: Transform) => {
          if (ended) return
          handedOver = true
          // A message that was handed over counts as taken until the server says otherwise.
          before = recorded ?? before
          clearTimeout(patience)
          patience = setTimeout(stop, finalReplyMs)
          // nodemailer's stream looks at every byte for dots to escape: use it only if there are any.
          if (needsEscapes(bytes)) target.end(bytes)
          else {
            target.push(Buffer.concat([bytes, END]))
            target.push(null)
          }
        }
        // nodemailer calls only `pipe`, once the server is ready for the message: that moment decides whether a broken
        // connection leaves the outcome unknown.
        const source = {
          pipe(target: Transform) {
            if (mayComplete === undefined) complete(target)
            else
              mayComplete().then(
                () => complete(target),
                () => ended || giveUp('record'),
              )
          },
        } as unknown as Readable
        line.send({ from, to: [to], size: bytes.length }, source, (error) => {
          if (!error) return finish(undefined)
          const fault = faultOf(error, handedOver)
          if (fault.code !== undefined && before === recorded) before = undefined
          // Its end may only be on its way.
          if (fault.code === undefined && fault.command === 'connect') line.close()
          if (fault.code === undefined || fault.code === 421) return finish(fault)
          // The server refused only this message: reset the connection. One that ends now never answers the reset.
          const refused = () => finish(fault)
          line.once('end', refused)
          line.reset((broken) => {
            if (broken) line.close()
            line.off('end', refused)
            refused()
          })
        })
      })
    }
  })
}

const END = Buffer.from('.\r\n')

/** True unless the bytes can go into DATA as they are: whole lines, none of which begins with a dot (RFC 5321 §4.5.2). */
const needsEscapes = (bytes: Buffer) =>
  ['\n.', '\r.'].some((text) => bytes.includes(text)) ||
  bytes[0] === 0x2e ||
  bytes.lastIndexOf('\r\n') !== bytes.length - 2

/** Nothing was sent. */
export const NO_REPLY: SmtpFault = { command: 'connect', handedOver: false }

/** The fault that nodemailer's error describes. The error's text is the server's own and is not passed on. */
function faultOf(error: unknown, handedOver: boolean): SmtpFault {
  type Texts = Record<'response' | 'code' | 'command' | 'originalCode' | 'message' | 'timeoutType', string>
  const given = (error ?? {}) as Partial<Texts> & { responseCode?: number }
  const { responseCode, response = '', code = '', command = '', originalCode = '', message = '' } = given
  const cause =
    given.timeoutType && (given.timeoutType === 'CONNECT_TIMEOUT' ? 'connect_timeout' : 'answer_timeout')
  return {
    // A message that is larger than the server's SIZE is refused before it is asked.
    code: code === 'EMESSAGE' && command === 'MAIL FROM' && responseCode === undefined ? 552 : responseCode,
    enhanced: /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1],
    command: commandOf(code, command, `${originalCode} ${message}`),
    handedOver,
    cause: error === undefined ? undefined : causeOf({ code: cause ?? originalCode }, 'answer'),
  }
}

const TLS_FAULT =
  /\b(?:CERT_|ERR_TLS|ERR_SSL|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)|certificate|altname|self.signed/i
const COMMANDS: Readonly<Record<string, SmtpFault['command']>> = {
  API: 'local',
  'MAIL FROM': 'mail',
  'RCPT TO': 'rcpt',
  DATA: 'data',
}

function commandOf(code: string, command: string, detail: string): SmtpFault['command'] {
  if (code === 'ETLS' || command === 'STARTTLS' || TLS_FAULT.test(detail)) return 'tls'
  if (code === 'EAUTH' || command.startsWith('AUTH')) return 'auth'
  // Also where nodemailer saw it before it wrote a command: that is no fault of the address.
  if (code === 'ECONNECTION') return 'connect'
  return COMMANDS[command] ?? 'connect'
}
