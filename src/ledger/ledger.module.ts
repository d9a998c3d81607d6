import { Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DeliveryReader } from './delivery-reader.service.js';
import { Ledger } from './ledger.service.js';
import { PartitionKeeper } from './partition-keeper.service.js';

@Module({ providers: [Ledger, PartitionKeeper, DeliveryReader], exports: [Ledger, PartitionKeeper, DeliveryReader] })
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
