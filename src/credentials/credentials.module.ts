import { Global, Module } from '@nestjs/common';
import { Authorizations } from './authorizations.service.js';

/** Global, as tokens are shared by whoever calls receivers. */
@Global()
@Module({ providers: [Authorizations], exports: [Authorizations] })
export class CredentialsModule {}
