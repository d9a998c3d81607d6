import { Global, Module } from '@nestjs/common';
import { UserSessions } from '../auth/user-sessions.js';
import { SessionController } from './session.controller.js';
import { SessionWatch } from './session-watch.service.js';
import { Sessions } from './sessions.service.js';
import { SignInController } from './sign-in.controller.js';
import { SignIn } from './sign-in.service.js';
import { TicketsController } from './tickets.controller.js';

/** Global, because guards are built in the module of the controller they guard. */
@Global()
@Module({
  controllers: [SessionController, SignInController, TicketsController],
  providers: [Sessions, SessionWatch, SignIn, { provide: UserSessions, useExisting: Sessions }],
  exports: [UserSessions],
})
export class SessionsModule {}
