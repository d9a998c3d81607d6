import { Global, Module } from '@nestjs/common';
import { Tally } from './tally.js';
import { TallyWriter } from './tally-writer.service.js';

/** Global: publishing and delivery count what they do. */
@Global()
@Module({ providers: [Tally, TallyWriter], exports: [Tally] })
export class ActivityModule {}
