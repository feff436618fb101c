import { escapeHtml } from './mail/template.ts'

/** Text for an element or an attribute of XML 1.0, without characters that it cannot hold, even escaped (XML §2.2). */
export function escapeXml(text: string): string {
  return escapeHtml(text.replaceAll(/(?![\n\t])\p{Cc}|\p{Cs}|[\ufffe\uffff]/gu, ''))
}
