import { Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DeliveryReader } from './delivery-reader.service.js';
import { Leases } from './leases.service.js';
import { Ledger } from './ledger.service.js';
import { PartitionKeeper } from './partition-keeper.service.js';

@Module({
  providers: [Ledger, Leases, PartitionKeeper, DeliveryReader],
  exports: [Ledger, Leases, PartitionKeeper, DeliveryReader],
})
export class LedgerModule implements OnModuleInit, OnApplicationShutdown {
  constructor(
    private readonly partitions: PartitionKeeper,
    private readonly ledger: Ledger,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.partitions.makeAhead();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.ledger.drain();
  }
}
