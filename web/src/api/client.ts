import createClient, { type FetchResponse } from 'openapi-fetch';
import type { paths } from '../../generated/admin-api.d.ts';
import { isActive } from './activity.ts';
import { ApiProblem, readProblem, Unreachable } from './problem.ts';

/** Where the console is served, with the slash at its end: the page's <base> is right behind any prefix. */
export const consoleRoot = new URL('.', document.baseURI);
/** Where the paths of the admin API begin. */
export const apiRoot = new URL('..', consoleRoot);

/** The admin API, typed from its own document. Use it with `answerOf`. */
export const api = createClient<paths>({
  baseUrl: apiRoot.href.replace(/\/$/, ''),
  credentials: 'same-origin',
  fetch: reach,
});

let hear: (refusal: ApiProblem) => void = () => {};
/** The session may have ended, which whatever shows the refusal does not know. */
export const onRefusal = (listener: typeof hear): void => void (hear = listener);

/**
 * The answer of a call.
 * @throws {ApiProblem} when the API refuses it
 * @throws {Unreachable} when nothing answers
 */
export async function answerOf<T extends Record<string | number, unknown>, O, M extends `${string}/${string}`>(
  call: Promise<FetchResponse<T, O, M>>,
): Promise<NonNullable<FetchResponse<T, O, M>['data']>> {
  return (await answerAndTagOf(call)).data;
}

/** The answer and its `ETag`, for a change that must not overwrite another operator's (`If-Match`). */
export async function answerAndTagOf<T extends Record<string | number, unknown>, O, M extends `${string}/${string}`>(
  call: Promise<FetchResponse<T, O, M>>,
): Promise<{ data: NonNullable<FetchResponse<T, O, M>['data']>; tag: string | undefined }> {
  const { data, error, response } = await unlessCut(call);
  if (!response.ok) {
    const refusal = readProblem(response, error);
    hear(refusal);
    throw refusal;
  }
  return {
    data: data as NonNullable<FetchResponse<T, O, M>['data']>,
    tag: response.headers.get('etag') ?? undefined,
  };
}

/** A call to a route of the console's own, outside the document of the admin API: sessions. */
export async function callConsole(method: string, path: string, body?: object): Promise<unknown> {
  const response = await reach(
    new Request(new URL(path, consoleRoot), {
      method,
      credentials: 'same-origin',
      headers: {
        Accept: 'application/json',
        ...(body && { 'Content-Type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    }),
  );
  const text = await unlessCut(response.text());
  const answer: unknown = text === '' ? undefined : parseOrText(text);
  if (!response.ok) throw new ApiProblem(readProblem(response, answer).problem, answer);
  return answer;
}

/**
 * A call gets something within this time, which is longer than Heraut's longest statement: otherwise the server is
 * gone, although the connection does not know yet. A change may have been carried out all the same.
 */
const longestSilenceMs = 45_000;
/** A receiver may take 300 seconds to answer, and Heraut waits for it. */
const longestCallMs = 330_000;

function reach(request: Request): Promise<Response> {
  return reachWithin(request, longestSilenceMs);
}

/** For a call of the API that calls a receiver, or a mail server, and answers when that has. */
export const reachReceiver = (request: Request): Promise<Response> => reachWithin(request, longestCallMs);

async function reachWithin(request: Request, silenceMs: number): Promise<Response> {
  // No form or link of another site can send this: with the session's cookie it is what makes a change ours. With 0 it
  // is no use of the session, which must end although a page is open and asks for news; some of that is asked with a
  // POST.
  request.headers.set('X-Heraut-Console', isActive() ? '1' : '0');
  return unlessCut(fetchWhileItComes(request, silenceMs));
}

/**
 * An answer may come for as long as it does: over a slow line a large one takes minutes, and would be asked for again
 * without end.
 */
async function fetchWhileItComes(request: Request, silenceMs: number): Promise<Response> {
  const silence = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const hear = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(new DOMException('Nothing came', 'TimeoutError')), silenceMs);
  };
  hear();
  try {
    const response = await fetch(request, { signal: AbortSignal.any([request.signal, silence.signal]) });
    // In Chromium one without content has a body, and yet cannot be made with one.
    if (!response.body || response.status === 204) {
      clearTimeout(timer);
      return response;
    }
    hear();
    const heard = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform: (chunk, to) => {
        hear();
        to.enqueue(chunk);
      },
      flush: () => clearTimeout(timer),
    });
    return new Response(response.body.pipeThrough(heard), response);
  } catch (error) {
    clearTimeout(timer);
    throw error;
  }
}

/** A connection may also be lost, or take too long, in the middle of an answer. */
async function unlessCut<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const isGone = error instanceof TypeError || (error instanceof DOMException && error.name === 'TimeoutError');
    throw isGone ? new Unreachable(error) : error;
  }
}

function parseOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // a proxy's page
  }
}
