/**
 * The Markdown that says what an MJML body says: its texts, buttons and images in order. The plain-text part and
 * the lesson's page are made from it, so that a body in MJML needs neither of its own.
 */
export function markdownOfMjml(mjml: string): string {
  return mjml
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(
      /<(?:mj-button|a)\b[^>]*\shref="([^"]*)"[^>]*>([\s\S]*?)<\/(?:mj-button|a)>/g,
      (_, href, label) => `[${String(label).trim()}](${href})`,
    )
    .replace(/<(?:mj-image|img)\b[^>]*\salt="([^"]*)"[^>]*\/?>/g, '\n\n$1\n\n')
    .replace(/<h([1-6])\b[^>]*>/g, (_, level) => `\n\n${'#'.repeat(Number(level))} `)
    .replace(/<li\b[^>]*>/g, '\n- ')
    .replace(/<br\s*\/?>/g, '\n')
    .replace(/<\/?(?:p|ul|ol|h[1-6]|div|table|tr|blockquote|mj-[a-z-]+)\b[^>]*\/?>/g, '\n\n')
    .replace(/<\/?(?:strong|b)\b[^>]*>/g, '**')
    .replace(/<[^>]+>/g, '')
    .replace(/^[ \t]+|[ \t]+$/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}
