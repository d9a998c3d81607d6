/** What an operator can do where RabbitMQ was not reached, or let nobody in. */
export const connectionAdvice = (error: unknown): string =>
  /ACCESS.REFUSED|403/.test((error as Error).message)
    ? 'The user, the password or the virtual host in AMQP_URL is wrong.'
    : 'Is RabbitMQ running, and is this its address? Check AMQP_URL. Publishing goes on meanwhile, delivering does not.';
