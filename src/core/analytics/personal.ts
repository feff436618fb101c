/** Property names that mean personal data, in lower case and without accents; docs/reference/events.md shows them. */

const list = (text: string): readonly string[] => text.trim().split(/\s+/)

/** Personal wherever they stand in a name: `billingEmail`, `courriel_perso`. */
export const PERSONAL_PARTS = list(`
  mail courriel correo phone telefon firstname lastname surname fullname username nachname vorname prenom
  nombre apellido cognome sobrenome achternaam nazwisko address direccion indirizzo endereco anschrift
  street strasse postcode postal latitude longitude geoloc birth geburt naissance nacimiento nasci gender
  geschlecht passport pasaporte reisepass socialsec taxid creditcard cardnumber kreditkarte tarjeta
  accountnumber passw contrasena kennwort motdepasse senha secret apikey credential cookie userid visitorid
  deviceid clientid customerid accountid memberid sessionid fingerprint useragent adres addrline epost
  sahkoposti telephon telefoon puhelin whatsapp msisdn nickname realname givenname familyname middlename
  maidenname displayname legalname efternavn etternavn efternamn fornavn fornamn prijmeni jmeno soyad
  sukunimi etunimi benutzer utilisateur usuario gebruiker uzytkownik kullanici wohnort domicilio cartapostal
  codigopostal kodpocztowy kodpostal urodzen geboorte nascita fodsel fodelse syntyma dogumtarih narozen
  steuernummer steuerid codicefiscale personnummer henkilotunnus rodnecislo sozialvers ausweis kontonummer
  kontonr numerokonta cuentabancaria bankverbindung rekeningnummer accountno cardno wachtwoord salasana
  losenord adgangskode passord passphrase geheim sifre privatekey accesskey signingkey csrf xsrf sessid
  bearer имя фамилия отчество почта телефон адрес пароль паспорт 姓名 名字 邮箱 邮件 电话 手机 地址 密码 身份证 氏名 名前 メール 電話 住所
  パスワード 이름 이메일 전화 주소 비밀번호 اسم بريد هاتف عنوان नाम ईमेल फोन पता
`)

/** Personal only as a word of their own: `ip` in `client_ip`, not in `script`. */
export const PERSONAL_WORDS = list(`
  name nom naam tel fax mobile handy movil cell ip ipv4 ipv6 mac imei city town location geo gps lat lng lon
  zip plz dob age sex ssn nif nie dni cpf curp bsn pesel nino vat iban bic cvv cvc pan pin otp auth
  authorization token jwt mdp user uid login pwd psw passwd addr adr acct konto sid sms nick email voornaam
  imie nome namn navn nimi isim jmeno haslo heslo parola clave wohnung ville ciudad stadt cidade citta
  miasto
`)

/** Things whose name is not personal: `lesson_name` stays, `teacher_name` goes. */
export const NAMED_THINGS = list('lesson course circuit exam device page plan gate model backend event topic')

const PART = new RegExp(PERSONAL_PARTS.join('|'))
const WORD = new RegExp(`_(?:${PERSONAL_WORDS.join('|')})_`)
const NAMED = new RegExp(`_(?:${NAMED_THINGS.join('|')})_names?_`)

/** Does this name mean personal data? Case, accents, separators and look-alike letters make no difference. */
export function isPersonalKey(key: string): boolean {
  const words = wordsOf(key)
  return isPersonalName(words) || isPersonalName(latinOf(words))
}

function isPersonalName(name: string): boolean {
  const words = `_${name}_`.replace(NAMED, '_')
  return PART.test(words.replace(/_/g, '')) || WORD.test(words)
}

/** Letters that look like a Latin one (Unicode TS #39), lower case, and that Latin one in the same place. */
const LOOKS = 'авеёкмнорстухіїјѕԁһӏԛԝѵьґαβγεηικνορτυχωνօոսզեıɑɡɩʋꞵꭰꮯłøđ'
const LATIN = 'abeekmhopctyxiijsdhlqwvbgabyenikvoptuxwvonuqeiaglubaclod'
const LATIN_OF: ReadonlyMap<string, string> = new Map([...LOOKS].map((look, at) => [look, LATIN[at] ?? '']))

function latinOf(words: string): string {
  // Marks of any script: what is left of a word is what is read.
  return [...words.normalize('NFKD').replace(/\p{Mn}/gu, '')].map((one) => LATIN_OF.get(one) ?? one).join('')
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
