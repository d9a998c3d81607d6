import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { examine, ways } from '../../scripts/address-guard/examine.mjs';
import { allowed } from '../../scripts/address-guard/forms.mjs';
import { DocumentationLinkCheck } from '../../src/channels/documentation-link.service.js';
import { readSettings } from '../../src/config/settings.js';
import { Authorizations } from '../../src/credentials/authorizations.service.js';
import { verbatim } from '../../src/credentials/credentials.js';
import { HttpWebhookClient } from '../../src/delivery/webhook-client.http.js';
import { systemClock } from '../../src/infra/clock.js';
import { Outbound } from '../../src/outbound/outbound.service.js';
import { CallbackProof } from '../../src/subscriptions/callback-proof.service.js';

const services = { Outbound, HttpWebhookClient, CallbackProof, DocumentationLinkCheck, Authorizations };
const program = { readSettings, ...services, verbatim, systemClock };

describe('an address that callbacks may not use', () => {
  beforeEach(() => Logger.overrideLogger(false));
  afterEach(() => Logger.overrideLogger(true));

  it('is connected to by nothing, however it is written, and whatever its name server says', async () => {
    const { rows, control } = await examine(program);
    expect(rows.length).toBeGreaterThan(70);
    const connected = rows.filter(({ counts }) => ways.some((way) => counts[way].refused > 0));
    expect(connected).toEqual([]);
    // It would have been noticed.
    for (const way of ways) expect(control.counts[way].allowed).toBeGreaterThan(0);
    // Refused addresses do not keep a call from the allowed ones.
    const mixed = rows.filter(
      ({ kind, form }) => kind === allowed || (kind.startsWith('name') && form.includes('127.0.0.2')),
    );
    for (const { counts } of mixed) for (const way of ways) expect(counts[way].allowed).toBeGreaterThan(0);
  });
});
