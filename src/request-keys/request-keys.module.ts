import { Module } from '@nestjs/common';
import { CreationRequests } from './creation-requests.service.js';

/** Does once what is asked for under an `Idempotency-Key`. The ledger keeps the keys. */
@Module({ providers: [CreationRequests], exports: [CreationRequests] })
export class RequestKeysModule {}
