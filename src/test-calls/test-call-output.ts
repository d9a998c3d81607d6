import * as z from 'zod';
import { errorClasses, errorClassOf } from '../deliveries/error-class.js';
import { hasArrived } from '../delivery/decide-outcome.js';
import type { WebhookResponse } from '../delivery/webhook-client.js';

export const testCallOutput = z
  .strictObject({
    isSuccess: z.boolean().describe('A delivery that is answered like this has arrived.'),
    status: z.int().nullable().describe('null: there was no answer.'),
    headers: z
      .record(z.string(), z.string())
      .describe('Of the answer, those that tell who answered, and why. Secrets that the call showed are taken out.'),
    body: z.string().describe('The first 4 KB, as far as they came within a second after the head.'),
    error: z.string().nullable().describe('Why there was no answer. null: there was one.'),
    // Null is one of the values, and not only `nullable`: OpenAPI 3.0 wants both where there is an `enum`.
    errorClass: z
      .literal([...errorClasses, null])
      .meta({ type: 'string', nullable: true })
      .describe('As deliveries have it. null: it is a success.'),
    wasSent: z.boolean().describe('false: certainly no byte left, so the receiver has not seen it.'),
    at: z.iso.datetime(),
    timeoutMs: z.int().describe('The time that the call could take.'),
    durationMs: z.number(),
    connectMs: z
      .number()
      .nullable()
      .describe('To connect, name lookup and TLS included. null: no connection came about.'),
    firstByteMs: z.number().nullable().describe('Until the first byte of the answer. null: not one came.'),
    address: z.string().nullable().describe('IP address and port that were called, or the address that was refused.'),
    webhookId: z.string().describe('The `webhook-id` of the call, by which the receiver finds it.'),
    isSigned: z.boolean(),
  })
  .meta({ id: 'TestCall' });

interface TestCall {
  at: number;
  timeoutMs: number;
  webhookId: string;
  isSigned: boolean;
  /** Not abandoned: of such a one nothing is known. */
  response: Exclude<WebhookResponse, { kind: 'abandoned' }>;
}

export function testCallToShow({ at, response, ...call }: TestCall): z.output<typeof testCallOutput> {
  const answer = response.kind === 'answered' ? response : undefined;
  const status = answer?.status ?? null;
  const error = 'reason' in response ? response.reason : null;
  const isSuccess = hasArrived(response);
  return {
    isSuccess,
    status,
    headers: answer?.headers ?? {},
    body: answer?.body ?? '',
    error,
    errorClass: errorClassOf({ lastStatus: status, lastError: error, state: isSuccess ? 'delivered' : 'failed' }),
    wasSent: answer !== undefined || (response.kind === 'unanswered' && response.wasSent),
    at: new Date(at).toISOString(),
    ...call,
    durationMs: tenths(response.durationMs),
    connectMs: response.connectMs === null ? null : tenths(response.connectMs),
    firstByteMs: response.firstByteMs === null ? null : tenths(response.firstByteMs),
    address: response.address,
  };
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10;
