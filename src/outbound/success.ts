/** Every status that RFC 9110 calls successful (§15.3): the receiver has taken what it was sent. */
export const isSuccess = (status: number): boolean => status >= 200 && status < 300;
