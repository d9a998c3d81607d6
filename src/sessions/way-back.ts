const base = 'http://console/console/';
/** Routes of the server itself: to be led back to one of them would begin anew. */
const notPages = /^(begin|callback|enter|session)(?![\w-])/;
/** As the browser writes it. It must fit into a cookie of 4 KB. */
const longest = 2000;

/**
 * A page of the console as an address relative to `/console/`, wherever a proxy has put that.
 * @param asked by whoever made the link, so it may be anything; undefined and what leads out of the console: its first
 *   page
 */
export function pathBackTo(asked: string | undefined): string {
  if (asked === undefined || !URL.canParse(`./${asked}`, base)) return './';
  const { href } = new URL(`./${asked}`, base);
  if (!href.startsWith(base)) return './';
  const path = href.slice(base.length);
  return path.length > longest || notPages.test(path) ? './' : `./${path}`;
}
