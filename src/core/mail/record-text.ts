/**
 * A name from a record (an organization's, an exam's) as it may stand in a subject and a mail: without characters that
 * hide or turn text around, and with nothing that a mail reader would make a link of. People choose such names, and
 * mails with them go to people who never asked.
 */
export function inertText(text: string): string {
  return (
    text
      .replace(HIDDEN, '')
      .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
      // The scheme first, then every dot, slash or at sign that could hold a host or an address together.
      .replace(/:\/\//g, ': ')
      .replace(/(?<=[\p{L}\p{N}_-])[.。．｡](?=[\p{L}\p{N}_-]*\p{L})/gu, '. ')
      .replace(/[@＠]/g, ' at ')
      .replace(/ {2,}/g, ' ')
      .trim()
      .slice(0, LONGEST)
      .toWellFormed()
  )
}

const LONGEST = 120
/** Format characters (soft hyphens, directions, tags), but not the joiners and selectors that scripts and emoji are written with. */
const HIDDEN = /(?!\u200c|\u200d|\ufe0f)[\p{Cf}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}]/gu
