import { Global, Module } from '@nestjs/common';
import { RequestKeysModule } from '../request-keys/request-keys.module.js';
import { ApplicationDirectory } from './application-directory.service.js';
import { ApplicationsController } from './applications.controller.js';
import { ApplicationsService } from './applications.service.js';
import { Authorization } from './authorization.service.js';
import { RefusalLimit } from './refusal-limit.service.js';
import { TokenVerifier } from './token-verifier.service.js';
import { TokenWatch } from './token-watch.service.js';

/** Global, because guards are built in the module of the controller they guard. */
@Global()
@Module({
  imports: [RequestKeysModule],
  controllers: [ApplicationsController],
  providers: [ApplicationDirectory, ApplicationsService, Authorization, RefusalLimit, TokenVerifier, TokenWatch],
  // The limit and the authorization: guards are made in the module of what they guard.
  exports: [ApplicationDirectory, ApplicationsService, Authorization, RefusalLimit, TokenVerifier, TokenWatch],
})
export class AuthModule {}
