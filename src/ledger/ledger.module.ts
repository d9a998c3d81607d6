import { Module, type OnModuleInit } from '@nestjs/common';
import { SendingClaims } from './claim-sending.service.js';
import { Holds } from './hold.service.js';
import { DeliveriesInHand } from './keep-in-hand.service.js';
import { PartitionKeeper } from './partition-keeper.service.js';
import { Settlements } from './settle.service.js';

/**
 * Notifications and deliveries: the truth. One file a verb; a verb whose calls are written in batches is a service,
 * each other one a function. Every promise resolves after the commit.
 */
@Module({
  providers: [PartitionKeeper, SendingClaims, DeliveriesInHand, Holds, Settlements],
  exports: [PartitionKeeper, SendingClaims, DeliveriesInHand, Holds, Settlements],
})
export class LedgerModule implements OnModuleInit {
  constructor(private readonly partitions: PartitionKeeper) {}

  async onModuleInit(): Promise<void> {
    await this.partitions.makeAhead();
  }
}
