// Every TCP connection that this process begins, seen where Node hands it to the system: below all that is examined.

/** @typedef {(this: unknown, ...values: unknown[]) => unknown} Connect */

/**
 * @param {(address: string) => void} onConnect is given the IP address
 * @returns {() => void} ends it
 */
export function watchConnects(onConnect) {
  const { TCP } =
    /** @type {{ binding: (name: string) => { TCP: { prototype: { connect: Connect, connect6: Connect } } } }} */ (
      /** @type {unknown} */ (process)
    ).binding('tcp_wrap');
  const { connect, connect6 } = TCP.prototype;
  /** @type {(original: Connect) => Connect} */
  const noting = (original) =>
    function (request, address, ...rest) {
      onConnect(String(address));
      return original.call(this, request, address, ...rest);
    };
  Object.assign(TCP.prototype, { connect: noting(connect), connect6: noting(connect6) });
  return () => Object.assign(TCP.prototype, { connect, connect6 });
}
