/** The whole body of an answer; rejects once it is larger, and reads no further. */
export async function boundedBody(response: Response, mostBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > mostBytes) throw new RangeError('the answer is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
