import { request } from 'undici'

const LARGEST_BODY_BYTES = 64 * 1024

/** One bounded GET that follows no redirect. Rejects when the other side cannot be reached in time. */
export async function reach(
  url: string,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly body: string }> {
  const answer = await request(url, {
    method: 'GET',
    headers: { accept: 'application/json', ...headers },
    signal,
  })
  let body = ''
  for await (const chunk of answer.body) {
    body += String(chunk)
    if (body.length > LARGEST_BODY_BYTES) throw new RangeError('the answer is too large')
  }
  return { status: answer.statusCode, body }
}
