/**
 * Which names of properties mean personal data, in the languages of the course's readers; docs/reference/events.md is
 * made from it. All in the form that `words` gives: lower case, no accents.
 */

/** Personal wherever they stand in a name: `billingEmail`, `courriel_perso`. */
export const PERSONAL_PARTS = [
  // e-mail, telephone
  ...['mail', 'courriel', 'correo', 'phone', 'telefon'],
  // names
  ...['firstname', 'lastname', 'surname', 'fullname', 'username'],
  ...[
    'nachname',
    'vorname',
    'prenom',
    'nombre',
    'apellido',
    'cognome',
    'sobrenome',
    'achternaam',
    'nazwisko',
  ],
  // where somebody lives or is
  ...['address', 'direccion', 'indirizzo', 'endereco', 'anschrift', 'street', 'strasse'],
  ...['postcode', 'postal', 'latitude', 'longitude', 'geoloc'],
  // birth, sex, papers
  ...['birth', 'geburt', 'naissance', 'nacimiento', 'nasci', 'gender', 'geschlecht'],
  ...['passport', 'pasaporte', 'reisepass', 'socialsec', 'taxid'],
  // money
  ...['creditcard', 'cardnumber', 'kreditkarte', 'tarjeta', 'accountnumber'],
  // keys to anything
  ...['passw', 'contrasena', 'kennwort', 'motdepasse', 'senha', 'secret', 'apikey', 'credential', 'cookie'],
  // who is who
  ...['userid', 'visitorid', 'deviceid', 'clientid', 'customerid', 'accountid', 'memberid', 'sessionid'],
  ...['fingerprint', 'useragent'],
  // other scripts
  ...['имя', 'фамилия', 'отчество', 'почта', 'телефон', 'адрес', 'пароль', 'паспорт'],
  ...['姓名', '名字', '邮箱', '邮件', '电话', '手机', '地址', '密码', '身份证'],
  ...['氏名', '名前', 'メール', '電話', '住所', 'パスワード', '이름', '이메일', '전화', '주소', '비밀번호'],
  ...['اسم', 'بريد', 'هاتف', 'عنوان', 'नाम', 'ईमेल', 'फोन', 'पता'],
] as const

/** Personal as a word of their own only: `ip` in `client_ip`, not in `script`. */
export const PERSONAL_WORDS = [
  ...['name', 'nom', 'naam', 'tel', 'fax', 'mobile', 'handy', 'movil', 'cell'],
  ...[
    'ip',
    'ipv4',
    'ipv6',
    'mac',
    'imei',
    'city',
    'town',
    'location',
    'geo',
    'gps',
    'lat',
    'lng',
    'lon',
    'zip',
    'plz',
  ],
  ...['dob', 'age', 'sex', 'ssn', 'nif', 'nie', 'dni', 'cpf', 'curp', 'bsn', 'pesel', 'nino', 'vat'],
  ...['iban', 'bic', 'cvv', 'cvc', 'pan', 'pin', 'otp', 'auth', 'authorization', 'token', 'jwt', 'mdp'],
  ...['user', 'uid', 'login'],
] as const

/** What may have a name without being a person: `lesson_name` stays, `teacher_name` goes. */
export const NAMED_THINGS = [
  ...[
    'lesson',
    'course',
    'circuit',
    'exam',
    'device',
    'page',
    'plan',
    'gate',
    'model',
    'backend',
    'event',
    'topic',
  ],
] as const

const PART = new RegExp(PERSONAL_PARTS.join('|'))
const WORD = new RegExp(`_(?:${PERSONAL_WORDS.join('|')})_`)
const NAMED = new RegExp(`_(?:${NAMED_THINGS.join('|')})_names?_`)

/** Does this name of a property mean personal data? Case, accents, camel case and separators make no difference. */
export function isPersonalKey(key: string): boolean {
  const words = `_${wordsOf(key)}_`.replace(NAMED, '_')
  return PART.test(words.replace(/_/g, '')) || WORD.test(words)
}

function wordsOf(key: string): string {
  return (
    key
      .normalize('NFKD')
      // Accents of Latin and Cyrillic; composing again brings back the letters of other scripts.
      .replace(/[\u0300-\u036f]/g, '')
      .normalize('NFC')
      .replace(/([a-z\d])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$1$3_$2')
      .toLowerCase()
      .replace(/[\s._-]+/g, '_')
  )
}

/**
 * What has the form of an e-mail address, anywhere in a text, also with its sign in full width or percent-encoded.
 * Without anchors, so that cutting a text can never make an address of what was none before.
 */
const ADDRESS = /[^\s@＠](?:@|＠|%40)[^\s@＠]/i

export function holdsAddress(text: string): boolean {
  return ADDRESS.test(text)
}
