/** Local storage key that stops analytics and error reporting when set to anything (CONTRACT §6). */
export const OPT_OUT_KEY = 'platform.optOut'
